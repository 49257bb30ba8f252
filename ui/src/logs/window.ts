// SPDX-License-Identifier: Apache-2.0

// A window over logs: the lines of several containers in the order of their times, bounded, so that a log of any size
// may go by.

import { time } from "../life/history";

export interface Entry {
  at: number; // milliseconds, NaN if the line has no time
  container: string;
  text: string;
}

export interface Bounds {
  lines: number;
  characters: number;
}

/** What is kept of logs: about 100 MB of memory at the most. */
export const pageBounds: Bounds = { lines: 400_000, characters: 48 << 20 };

/** cutTime takes the time that a server has put before a line from it. */
export function cutTime(line: string): { stamp: string; text: string } {
  const space = line.indexOf(" ");
  const stamp = space < 0 ? line : line.slice(0, space);
  if (/^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/.test(stamp)) {
    return { stamp, text: space < 0 ? "" : line.slice(space + 1) };
  }
  return { stamp: "", text: line };
}

/** LogWindow holds the lines. Those of one container stay in the order in which they came, whatever their times say. */
export class LogWindow {
  entries: Entry[] = [];
  /** version is another one after each change. */
  version = 0;
  /** dropped is how many of the oldest lines are no longer held. */
  dropped = 0;
  private characters = 0;
  private readonly newest = new Map<string, { at: number; stamp: string }>();

  constructor(private readonly bounds: Bounds = pageBounds) {}

  /** lastStamp is the time, as the server wrote it, of the last line of a container; "" if there is none. */
  lastStamp(container: string): string {
    return this.newest.get(container)?.stamp ?? "";
  }

  /** add takes lines of a container, each with its time. Again, with a stamp: lines up to it are there already. */
  add(container: string, lines: readonly string[], again = ""): void {
    const batch: Entry[] = [];
    const last = this.newest.get(container) ?? { at: -Infinity, stamp: "" };
    for (const line of lines) {
      const { stamp, text } = cutTime(line);
      if (again && stamp && notAfter(stamp, again)) {
        continue;
      }
      const at = stamp ? time(stamp) : NaN;
      last.at = Math.max(last.at, Number.isNaN(at) ? -Infinity : at);
      last.stamp = stamp || last.stamp;
      batch.push({ at: last.at, container, text });
      this.characters += text.length;
    }
    if (batch.length === 0) {
      return;
    }
    this.newest.set(container, last);
    this.merge(batch);
    this.trim();
    this.version++;
  }

  private merge(batch: Entry[]): void {
    let from = this.entries.length;
    while (from > 0 && this.entries[from - 1]!.at > batch[0]!.at) {
      from--;
    }
    if (from === this.entries.length) {
      for (const entry of batch) {
        this.entries.push(entry);
      }
      return;
    }
    const tail = this.entries.slice(from);
    this.entries.length = from;
    let i = 0;
    for (const entry of batch) {
      while (i < tail.length && tail[i]!.at <= entry.at) {
        this.entries.push(tail[i++]!);
      }
      this.entries.push(entry);
    }
    while (i < tail.length) {
      this.entries.push(tail[i++]!);
    }
  }

  /** trim drops the oldest lines beyond the bounds, a tenth at once, so that it need not be done for each line. */
  private trim(): void {
    const { lines, characters } = this.bounds;
    if (this.entries.length <= lines && this.characters <= characters) {
      return;
    }
    let drop = Math.max(0, this.entries.length - Math.floor(lines * 0.9));
    let left = this.characters;
    for (let i = 0; i < drop; i++) {
      left -= this.entries[i]!.text.length;
    }
    while (left > characters * 0.9 && drop < this.entries.length - 1) {
      left -= this.entries[drop++]!.text.length;
    }
    this.entries = this.entries.slice(drop);
    this.characters = left;
    this.dropped += drop;
  }

  /** indexAt is the first line at a time or after it. */
  indexAt(at: number): number {
    let [low, high] = [0, this.entries.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.entries[middle]!.at < at) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
}

/** notAfter compares times as servers write them; a double would not tell nanoseconds apart. */
function notAfter(a: string, b: string): boolean {
  return a.length === b.length ? a <= b : time(a) <= time(b);
}

/** Finder knows where a text is in lines. Lines that were only added to are not looked through again. */
export class Finder {
  private text = "";
  private looked: readonly Entry[] = [];
  private upTo = 0;
  private first?: Entry;
  private last?: Entry;
  private places: number[] = [];

  /** find returns the places of the lines that have a text in them, in any case. */
  find(entries: readonly Entry[], text: string): number[] {
    const wanted = text.toLowerCase();
    const goesOn = wanted === this.text && entries === this.looked && this.upTo <= entries.length &&
      entries[0] === this.first && entries[this.upTo - 1] === this.last;
    if (!goesOn) {
      this.places = [];
      this.upTo = 0;
    }
    const found: number[] = [];
    for (let i = this.upTo; wanted && i < entries.length; i++) {
      if (entries[i]!.text.toLowerCase().includes(wanted)) {
        found.push(i);
      }
    }
    this.places = found.length > 0 || !goesOn ? [...this.places, ...found] : this.places;
    [this.text, this.looked, this.upTo, this.first, this.last] = [wanted, entries, entries.length, entries[0], entries[entries.length - 1]];
    return this.places;
  }
}
