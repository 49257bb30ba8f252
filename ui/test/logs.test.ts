// SPDX-License-Identifier: Apache-2.0

import { expect, test } from "vitest";
import { fold, pieces, plain, whole } from "../src/logs/line";
import { cutTime, Finder, LogWindow } from "../src/logs/window";

const stamp = (n: number) => `2026-11-29T15:00:${String(Math.floor(n)).padStart(2, "0")}.${String(Math.round((n % 1) * 1e9)).padStart(9, "0")}Z`;
const line = (n: number, text: string) => `${stamp(n)} ${text}`;
const texts = (w: LogWindow) => w.entries.map((e) => e.text);

test("lines of several containers stand in the order of their times", () => {
  const w = new LogWindow();
  w.add("a", [line(1, "a1"), line(3, "a3"), line(5, "a5")]);
  w.add("b", [line(2, "b2"), line(3, "b3"), line(9, "b9")]);
  w.add("a", [line(4, "late"), line(6, "a6")]);
  expect(texts(w)).toEqual(["a1", "b2", "a3", "b3", "a5", "late", "a6", "b9"]);
});

test("the lines of one container stay in the order in which they came", () => {
  const w = new LogWindow();
  w.add("a", [line(5, "first"), line(1, "clock went back"), "no time at all", line(6, "last")]);
  expect(texts(w)).toEqual(["first", "clock went back", "no time at all", "last"]);
});

test("a log that is taken up again does not say things twice, to the nanosecond", () => {
  const w = new LogWindow();
  w.add("a", [line(1.000000001, "one"), line(1.000000002, "two")]);
  w.add("a", [line(1.000000001, "one"), line(1.000000002, "two"), line(1.000000003, "three")], w.lastStamp("a"));
  expect(texts(w)).toEqual(["one", "two", "three"]);
});

// UI-10
test("a window is bounded by lines and by characters, and says how many are gone", () => {
  const w = new LogWindow({ lines: 1000, characters: 1e9 });
  for (let i = 0; i < 50; i++) {
    w.add("a", Array.from({ length: 100 }, (_, j) => line(1, `n${i * 100 + j}`)));
    expect(w.entries.length).toBeLessThanOrEqual(1000);
  }
  expect(w.entries.at(-1)!.text).toBe("n4999");
  expect(w.dropped + w.entries.length).toBe(5000);
  const small = new LogWindow({ lines: 1e6, characters: 1000 });
  small.add("a", Array.from({ length: 100 }, () => line(1, "x".repeat(100))));
  expect(small.entries.length).toBeLessThanOrEqual(10);
});

test("100 MB go through a window in a few seconds", () => {
  const w = new LogWindow();
  const text = "x".repeat(180);
  for (let i = 0; i < 500; i++) {
    w.add(i % 2 ? "a" : "b", Array.from({ length: 1000 }, (_, j) => line((i / 10) % 60, text + j)));
  }
  expect(w.entries.length).toBeGreaterThan(100_000);
  expect(new Finder().find(w.entries, "X999").length).toBeGreaterThan(100);
}, 60_000);

test("what is searched for is found in lines that are added, put between others and dropped", () => {
  const w = new LogWindow({ lines: 6, characters: 1e9 });
  const finder = new Finder();
  const found = (text: string) => finder.find(w.entries, text).map((i) => w.entries[i]!.text);
  w.add("a", [line(1, "err 1"), line(3, "ok"), line(5, "ERR 2")]);
  expect(found("err")).toEqual(["err 1", "ERR 2"]);
  w.add("a", [line(6, "err 3")]);
  expect(found("err")).toEqual(["err 1", "ERR 2", "err 3"]);
  w.add("b", [line(2, "err between")]);
  expect(found("err")).toEqual(["err 1", "err between", "ERR 2", "err 3"]);
  w.add("a", [line(7, "x"), line(8, "y")]);
  expect(found("err")).toEqual(w.entries.map((e) => e.text).filter((t) => /err/i.test(t)));
  expect(found("")).toEqual([]);
});

test("the first line at a moment is found", () => {
  const w = new LogWindow();
  w.add("a", [1, 2, 3].map((n) => line(n, `l${n}`)));
  expect([0, 2, 2.5, 9].map((n) => w.indexAt(Date.parse(stamp(n))))).toEqual([0, 1, 2, 3]);
});

test("a time is cut off only where there is one", () => {
  expect(cutTime(line(1, "a b")).text).toBe("a b");
  expect(cutTime(stamp(1))).toEqual({ stamp: stamp(1), text: "" });
  expect(cutTime("2026 was a year")).toEqual({ stamp: "", text: "2026 was a year" });
});

test("JSON is folded to its level and message; all else stays as it is", () => {
  expect(fold('{"level":"warn","msg":"slow","ts":1,"path":"/a","n":{"x":1}}')).toEqual({ level: "warn", message: "slow", rest: 'path=/a n={"x":1}' });
  expect(fold('{"level":50,"message":"pino"}')).toMatchObject({ level: "error", message: "pino" });
  expect(fold('{"a":')).toBeNull();
  expect(fold("plain")).toBeNull();
  expect(whole('{"a":1}')).toBe('{\n  "a": 1\n}');
});

// UI-04
test("what is meant for a terminal is left out, and markup is text", () => {
  expect(plain("\u001b[31mred\u001b[0m\u0007 and \tplain")).toBe("red and \tplain");
  expect(plain("a\u0000b")).toBe("ab");
  expect(plain("<b>")).toBe("<b>");
});

test("what is searched for is marked, in any case", () => {
  expect(pieces("Error: an error", "ERR").map((p) => (p.found ? `[${p.text}]` : p.text)).join("")).toBe("[Err]or: an [err]or");
  expect(pieces("x", "")).toEqual([{ text: "x", found: false }]);
  expect(pieces("İ error", "error").map((p) => p.text).join("")).toBe("İ error");
});
