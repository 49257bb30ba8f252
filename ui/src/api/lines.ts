// SPDX-License-Identifier: Apache-2.0

// Text that comes in pieces, cut into lines.

/** Lines cuts pieces of text into lines. What is longer than the bound is cut, so that no line fills the memory. */
export class Lines {
  private rest = "";

  constructor(private readonly longest = Infinity) {}

  /** add takes a piece and returns the lines that are whole now. */
  add(piece: string): string[] {
    const parts = (this.rest + piece).split("\n");
    this.rest = parts.pop() ?? "";
    if (this.rest.length > this.longest) {
      parts.push(this.rest);
      this.rest = "";
    }
    return parts.map((line) => (line.length > this.longest ? line.slice(0, this.longest) + "…" : line));
  }

  /** end returns the last line if it has no end of its own. */
  end(): string[] {
    const last = this.rest;
    this.rest = "";
    return last ? [last] : [];
  }
}
