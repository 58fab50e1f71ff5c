// Where the nodes of a graph stand: in columns, the sources in the first, then level by level, views in the last one.
// Operators of a level that feed each other take several columns; no column is of two levels. Within a column nodes are
// ordered so that few edges cross, and each is drawn towards its neighbours. An edge that passes a column gets a lane of
// its own there.
export const WIDTH = 168;
export const HEIGHT = 72;
const ACROSS = 42;
const BETWEEN = 20;
const LANE = 16;
const MARGIN = 20;
const HEAD = 26;
const SWEEPS = 8;

/** `{places: Map(id => {x, y}), edges: [{from, to, points: [[x, y], ...]}], width, height, columns}` */
export function layout(nodes, edges) {
  const ranks = ranksOf(nodes, edges);
  const columns = [];
  const put = (item) => ((columns[item.rank] ??= []).push(item), item);
  const items = new Map(nodes.map((node) => [node.id, put({ id: node.id, rank: ranks.get(node.id), height: HEIGHT, near: [] })]));
  const routes = edges.map(([from, to]) => ({ from, to, stops: stopsOf(items, from, to, put) }));
  for (let at = 0; at < columns.length; at += 1) columns[at] ??= [];
  for (const { stops } of routes) {
    for (let at = 1; at < stops.length; at += 1) link(stops[at - 1], stops[at]);
  }
  order(columns);
  settle(columns);
  return measured(items, routes, columns);
}

function ranksOf(nodes, edges) {
  const before = new Map(nodes.map((node) => [node.id, []]));
  for (const [from, to] of edges) before.get(to)?.push(from);
  const ranks = new Map();
  const rank = (id, least) => {
    if (!ranks.has(id)) {
      ranks.set(id, least); // a circle, which no plan has, would end here
      ranks.set(id, Math.max(least, ...before.get(id).map((each) => rank(each, least) + 1)));
    }
    return ranks.get(id);
  };
  for (const level of levelsOf(nodes)) {
    const least = Math.max(-1, ...ranks.values()) + 1;
    for (const node of nodes) if (node.level === level) rank(node.id, least);
  }
  return ranks;
}

/** As rows pass them: sources have none, views are on 0. */
const levelsOf = (nodes) => [...new Set(nodes.map((node) => node.level))].sort((one, other) => (other ?? Infinity) - (one ?? Infinity));

/** The items that an edge passes: its ends, and lanes between them, which edges of one origin share. */
function stopsOf(items, from, to, put) {
  const [start, end] = [items.get(from), items.get(to)];
  const stops = [start];
  for (let rank = start.rank + 1; rank < end.rank; rank += 1) {
    const id = `${from} ${rank}`;
    if (!items.has(id)) items.set(id, put({ id, rank, height: LANE, lane: true, near: [] }));
    stops.push(items.get(id));
  }
  return [...stops, end];
}

function link(one, other) {
  if (one.near.includes(other)) return;
  one.near.push(other);
  other.near.push(one);
}

function order(columns) {
  columns.forEach((column) => column.forEach((item, at) => { item.at = at; }));
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const turn = sweep % 2 ? [...columns].reverse() : columns;
    for (const column of turn) {
      const side = sweep % 2 ? 1 : -1;
      for (const item of column) item.wish = wish(item, side);
      column.sort((one, other) => one.wish - other.wish || one.at - other.at);
      column.forEach((item, at) => { item.at = at; });
    }
  }
}

function wish(item, side) {
  const near = item.near.filter((each) => Math.sign(each.rank - item.rank) === side);
  return near.length ? near.reduce((sum, each) => sum + each.at, 0) / near.length : item.at;
}

function settle(columns) {
  for (const column of columns) {
    let y = 0;
    for (const item of column) { item.y = y; y += item.height + BETWEEN; }
    for (const item of column) item.y -= y / 2;
  }
  for (let sweep = 0; sweep < 4 * SWEEPS; sweep += 1) columns.forEach(drawTowards);
}

const middle = (item) => item.y + item.height / 2;

/** Moves a column's items towards their neighbours, as far as their order and size let them. */
function drawTowards(column) {
  const wishes = column.map((item) =>
    item.near.length ? item.near.reduce((sum, each) => sum + middle(each), 0) / item.near.length - item.height / 2 : item.y);
  let least = -Infinity;
  column.forEach((item, at) => {
    item.y = Math.max(wishes[at], least);
    least = item.y + item.height + BETWEEN;
  });
  const shift = column.reduce((sum, item, at) => sum + wishes[at] - item.y, 0) / (column.length || 1);
  for (const item of column) item.y += shift;
}

function measured(items, routes, columns) {
  const all = [...items.values()];
  const top = Math.min(0, ...all.map((item) => item.y)) - MARGIN - HEAD;
  const bottom = Math.max(...all.map((item) => item.y + item.height)) + MARGIN;
  const x = (item) => MARGIN + item.rank * (WIDTH + ACROSS);
  const y = (item) => item.y - top;
  return {
    places: new Map(all.filter((item) => !item.lane).map((item) => [item.id, { x: x(item), y: y(item) }])),
    edges: routes.map(({ from, to, stops }) => ({ from, to, points: pointsOf(stops, x, y) })),
    columns: columns.map((_, rank) => MARGIN + rank * (WIDTH + ACROSS)),
    width: 2 * MARGIN + columns.length * WIDTH + (columns.length - 1) * ACROSS,
    height: bottom - top,
  };
}

function pointsOf(stops, x, y) {
  return stops.flatMap((item, at) => {
    const height = y(item) + item.height / 2;
    const ends = [[x(item), height], [x(item) + WIDTH, height]];
    return at === 0 ? [ends[1]] : at === stops.length - 1 ? [ends[0]] : ends;
  });
}
