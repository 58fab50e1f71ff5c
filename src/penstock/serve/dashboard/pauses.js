// Pauses before something is tried again: each twice as long as the one before, up to ten seconds.
const FIRST = 250;
const LONGEST = 10_000;

export class Pauses {
  #next = FIRST;

  /** How many milliseconds to wait this time. */
  next() {
    const now = this.#next;
    this.#next = Math.min(LONGEST, now * 2);
    return now;
  }

  /** It has worked: the next one is short again. */
  reset() {
    this.#next = FIRST;
  }
}
