// A table of records as they stand in the log.
import { h, scrolled } from "./dom.js";
import { isNumeric, kindOf, moment, shown } from "./format.js";

export function recordTable(topic, records) {
  const raw = records.some((record) => typeof record.values === "string" || record.values?.base64);
  const columns = raw ? [] : topic.columns;
  const several = topic.partitions > 1;
  const headed = records.some((record) => Object.keys(record.headers).length);
  const head = [
    several && h("th", { scope: "col", class: "number", text: "Partition" }),
    h("th", { scope: "col", class: "number", text: "Offset" }),
    h("th", { scope: "col", text: "Appended" }),
    raw && h("th", { scope: "col", text: "Key" }),
    raw && h("th", { scope: "col", text: "Value" }),
    ...columns.map((column) => h("th", { scope: "col", class: isNumeric(column) ? "number" : null }, column.name, h("span", { class: "kind", text: aboutColumn(topic, column) }))),
    headed && h("th", { scope: "col", text: "Headers" }),
  ];
  const table = h("table", {}, h("caption", { class: "unseen", text: `Records of ${topic.topic}` }),
    h("thead", {}, h("tr", {}, ...head)),
    h("tbody", {}, ...records.map((record) => line(record, { columns, raw, several, headed }))));
  return scrolled(`Records of ${topic.topic}`, table);
}

function aboutColumn(topic, column) {
  const roles = [topic.key.includes(column.name) && "key", topic.event_time === column.name && "event time"].filter(Boolean);
  return [kindOf(column), ...roles].join(" · ");
}

function line(record, { columns, raw, several, headed }) {
  return h("tr", {},
    several && h("td", { class: "number", text: record.partition }),
    h("th", { scope: "row", class: "number", text: record.offset }),
    h("td", {}, record.deleted && h("span", { class: "tag", text: "deletion" }), moment(record.appended_at)),
    raw && h("td", { text: shown(record.key) }),
    raw && h("td", { class: "wide", text: shown(record.values) }),
    ...columns.map((column) => cell(column, record.values?.[column.name] ?? null)),
    headed && h("td", { class: "cells" }, ...Object.entries(record.headers).map(pair)));
}

const cell = (column, value) => h("td", { class: [isNumeric(column) && "number", value === null && "null"].filter(Boolean).join(" ") || null, text: shown(value) });

const pair = ([name, value]) => h("span", { class: "pair" }, h("span", { class: "name", text: name }), shown(value));
