// SPDX-License-Identifier: Apache-2.0

// Places of times on a line. Quiet stretches far longer than all else are cut short, so that a start of 0.3 s is still
// seen after a day.

import type { Picture } from "./picture";
import { since } from "./words";

interface Part {
  from: number;
  to: number;
  left: number;
  size: number;
  cut: boolean;
}

export interface Tick {
  at: number;
  label: string;
}

const cutOver = 2; // a stretch is cut when it is so many times as long as all others together
const cutShare = 5; // and gets one part in so many of the axis
const mostCuts = 4;
const mostTicks = 200; // clocks may be wrong by centuries

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const steps = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, second, 2 * second, 5 * second, 10 * second, 15 * second, 30 * second, minute, 2 * minute,
  5 * minute, 10 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 6 * hour, 12 * hour, day, 7 * day, 30 * day, 365 * day,
];

export class Axis {
  private readonly parts: Part[] = [];
  private readonly from: number;

  constructor(
    picture: Picture,
    readonly width: number,
  ) {
    this.from = picture.from;
    const edges = [picture.from, picture.to];
    for (const row of picture.rows) {
      edges.push(...row.bars.flatMap((b) => [b.from, b.to]), ...row.marks.map((m) => m.at));
    }
    const order = [...new Set(edges.filter((t) => t >= picture.from && t <= picture.to))].sort((a, b) => a - b);
    for (let i = 1; i < order.length; i++) {
      this.parts.push({ from: order[i - 1]!, to: order[i]!, left: 0, size: 0, cut: false });
    }
    this.place(this.shorten(picture.to - picture.from));
  }

  /** shorten marks the parts to be cut; it returns the time in those that are not. */
  private shorten(whole: number): number {
    for (let cuts = 0; cuts < mostCuts && this.parts.length > 1; cuts++) {
      let longest: Part | undefined;
      for (const p of this.parts) {
        if (!p.cut && (!longest || p.to - p.from > longest.to - longest.from)) {
          longest = p;
        }
      }
      const length = longest ? longest.to - longest.from : 0;
      if (!longest || length <= cutOver * (whole - length) || whole === length) {
        break;
      }
      longest.cut = true;
      whole -= length;
    }
    return whole;
  }

  private place(whole: number): void {
    const cuts = this.parts.filter((p) => p.cut).length;
    const short = this.width / (cutShare + cuts);
    const free = this.width - short * cuts;
    let left = 0;
    for (const p of this.parts) {
      p.left = left;
      p.size = p.cut ? short : (free * (p.to - p.from)) / Math.max(whole, 1e-6);
      left += p.size;
    }
  }

  /** at is the place of a time. */
  at(t: number): number {
    for (const p of this.parts) {
      if (t < p.to) {
        return t <= p.from ? p.left : p.left + (p.size * (t - p.from)) / (p.to - p.from);
      }
    }
    return this.width;
  }

  /** time is the time at a place: the other way round. */
  time(x: number): number {
    for (const p of this.parts) {
      if (x < p.left + p.size) {
        return p.from + ((p.to - p.from) * Math.max(0, x - p.left)) / Math.max(p.size, 1e-9);
      }
    }
    return this.parts[this.parts.length - 1]?.to ?? this.from;
  }

  /** cuts are the middles of the stretches that are cut short. */
  cuts(): number[] {
    return this.parts.filter((p) => p.cut).map((p) => p.left + p.size / 2);
  }

  /** ticks are round times since the beginning, about apart from one another. */
  ticks(apart: number): Tick[] {
    const step = this.step(apart);
    if (!step) {
      return [{ at: 0, label: "0s" }];
    }
    const out: Tick[] = [];
    for (let i = 0; i < this.parts.length; ) {
      if (this.parts[i]!.cut) {
        i++;
        continue;
      }
      let j = i;
      while (j < this.parts.length && !this.parts[j]!.cut) {
        j++;
      }
      this.stretch(out, this.parts[i]!, this.parts[j - 1]!.to, i > 0, step);
      i = j;
    }
    const last = this.parts[this.parts.length - 1];
    if (last?.cut) {
      out.push({ at: this.width, label: since(Math.round(last.to - this.from)) });
    }
    return out;
  }

  private stretch(out: Tick[], first: Part, end: number, afterCut: boolean, step: number): void {
    const offset = first.from - this.from;
    if (afterCut) {
      // The reader has to be shown where he is.
      out.push({ at: first.left, label: since(Math.round(offset)) });
      for (let d = step; first.from + d <= end && out.length < mostTicks; d += step) {
        out.push({ at: this.at(first.from + d), label: "+" + since(d) });
      }
      return;
    }
    for (let d = Math.ceil(offset / step) * step; this.from + d <= end && out.length < mostTicks; d += step) {
      out.push({ at: this.at(this.from + d), label: since(d) });
    }
  }

  private step(apart: number): number {
    const part = this.parts.find((p) => !p.cut && p.size > 0);
    if (!part) {
      return 0;
    }
    const want = ((part.to - part.from) * apart) / part.size;
    return steps.find((s) => s >= want) ?? want;
  }
}
