// SPDX-License-Identifier: Apache-2.0

// Text that comes in pieces, cut into lines.

/** Lines cuts pieces of text into lines. What is longer than the bound is cut, so that no line fills the memory. */
export class Lines {
  private rest: string[] = []; // pieces of a line that is not whole
  private size = 0;

  constructor(private readonly longest = Infinity) {}

  /** add takes a piece and returns the lines that are whole now. */
  add(piece: string): string[] {
    const parts = piece.split("\n");
    const rest = parts.pop() ?? "";
    if (parts.length > 0) {
      parts[0] = [...this.rest, parts[0]].join("");
      [this.rest, this.size] = [[], 0];
    }
    this.rest.push(rest);
    this.size += rest.length;
    if (this.size > this.longest) {
      parts.push(...this.end());
    }
    return parts.map((line) => (line.length > this.longest ? line.slice(0, this.longest) + "…" : line));
  }

  /** end returns the last line if it has no end of its own. */
  end(): string[] {
    const last = this.rest.join("");
    [this.rest, this.size] = [[], 0];
    return last ? [last] : [];
  }
}
