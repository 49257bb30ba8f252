// SPDX-License-Identifier: Apache-2.0

// How two texts differ, line by line.

/** Piece is lines that both texts have, or only one of them. */
export interface Piece {
  in: "both" | "one" | "two";
  lines: string[];
}

const mostSteps = 600; // differing lines; beyond, the texts are just two texts

/** diff compares texts by the fewest lines that are in one of them only (Myers). */
export function diff(one: string, two: string): Piece[] {
  const [a, b] = [split(one), split(two)];
  let front = 0;
  while (front < a.length && front < b.length && a[front] === b[front]) {
    front++;
  }
  let back = 0;
  while (back < a.length - front && back < b.length - front && a[a.length - 1 - back] === b[b.length - 1 - back]) {
    back++;
  }
  const middle = between(a.slice(front, a.length - back), b.slice(front, b.length - back));
  return pieces([...a.slice(0, front).map((l): [Piece["in"], string] => ["both", l]), ...middle, ...a.slice(a.length - back).map((l): [Piece["in"], string] => ["both", l])]);
}

function split(text: string): string[] {
  const lines = text.split("\n");
  if (lines[lines.length - 1] === "") {
    lines.pop();
  }
  return lines;
}

type Told = [Piece["in"], string];

function between(a: string[], b: string[]): Told[] {
  const trace: Map<number, number>[] = [];
  const far = new Map<number, number>([[1, 0]]);
  for (let d = 0; d <= Math.min(a.length + b.length, mostSteps); d++) {
    trace.push(new Map(far));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (far.get(k - 1) ?? -1) < (far.get(k + 1) ?? -1));
      let x = down ? far.get(k + 1) ?? 0 : (far.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) {
        x++;
      }
      far.set(k, x);
      if (x >= a.length && x - k >= b.length) {
        return back(a, b, trace);
      }
    }
  }
  return [...a.map((l): Told => ["one", l]), ...b.map((l): Told => ["two", l])];
}

/** back goes the way that was found from its end to its beginning. */
function back(a: string[], b: string[], trace: Map<number, number>[]): Told[] {
  const out: Told[] = [];
  let [x, y] = [a.length, b.length];
  for (let d = trace.length - 1; d >= 0; d--) {
    const far = trace[d]!;
    const k = x - y;
    const down = k === -d || (k !== d && (far.get(k - 1) ?? -1) < (far.get(k + 1) ?? -1));
    const fromX = down ? far.get(k + 1) ?? 0 : far.get(k - 1) ?? 0;
    const fromY = fromX - (down ? k + 1 : k - 1);
    while (x > 0 && y > 0 && x > fromX && y > fromY) {
      out.push(["both", a[--x]!]);
      y--;
    }
    if (d > 0) {
      out.push(down ? ["two", b[--y]!] : ["one", a[--x]!]);
    }
  }
  return out.reverse();
}

function pieces(told: Told[]): Piece[] {
  const out: Piece[] = [];
  for (const [where, line] of told) {
    const last = out[out.length - 1];
    if (last?.in === where) {
      last.lines.push(line);
    } else {
      out.push({ in: where, lines: [line] });
    }
  }
  return out;
}

/** Row is a line of a comparison as it is drawn. */
export interface Row {
  sign: " " | "-" | "+" | "…";
  text: string;
}

/** rowsOf are the lines to draw: of those that both have, a few around each difference. */
export function rowsOf(list: Piece[], around = 3): Row[] {
  const sign = { both: " ", one: "-", two: "+" } as const;
  return list.flatMap((p, i) => {
    const rows = p.lines.map((text): Row => ({ sign: sign[p.in], text }));
    if (p.in !== "both") {
      return rows;
    }
    const [head, tail] = [i === 0 ? 0 : around, i === list.length - 1 ? 0 : around];
    const left = rows.length - head - tail;
    return left < 2 ? rows : [...rows.slice(0, head), { sign: "…", text: `${left} lines alike` } as Row, ...rows.slice(rows.length - tail || rows.length)];
  });
}
