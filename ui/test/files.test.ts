// SPDX-License-Identifier: Apache-2.0

import { expect, test } from "vitest";
import { answerFrom, base64From, bytesFrom } from "../src/files/answer";
import { commandFor } from "../src/files/command";
import { contentOf, dump } from "../src/files/content";
import { diff, rowsOf } from "../src/files/diff";
import { clean, crumbs, escapeName, join, last, parent, plain, shown, typed } from "../src/files/path";
import { besideOf } from "../src/files/root";
import { talkPath } from "../src/files/talk";
import { differenceWords, inOrder, modeWords, ownerWords } from "../src/files/words";

const entry = (part: object) => answerFrom(JSON.stringify({ end: true, file: { name: "x", kind: "f", size: 0, mode: 0o644, uid: 0, gid: 0, time: "2026-11-29T15:00:00.5Z", ...part } })).file!;

// UI-04 UI-06: names of any bytes are paths, and are shown as what they are.
test("names with line ends, escapes and bytes that are no text come through, and act on nothing", () => {
  expect(shown("a%0Ab%1B%5B31m%E2%80%AEtxt")).toBe("a\\nb\\e[31m\\u202etxt");
  expect(shown("%FFx%C3%BC")).toBe("\\xffx\\xc3\\xbc");
  expect(shown("%C3%BC%20%25zz%")).toBe("ü %zz%");
  expect(shown("<img src=x>")).toBe("<img src=x>");
  expect(plain("/a%0Ab")).toBe("/a\nb");
  expect(plain("/%FF")).toBeNull();
  expect([join("/", "a"), join("/a/", "b%2Fc"), parent("/a/b"), parent("/"), last("/a/b"), last("/")]).toEqual(["/a", "/a/b%2Fc", "/a", "/", "b", ""]);
  expect(clean("/../a/./b//../c/")).toBe("/a/c");
  expect(typed("/etc/50% off/../ü")).toBe("/etc/%C3%BC");
  expect(escapeName("a/b?")).toBe("a%2Fb%3F");
  expect(crumbs("/a/b").map((c) => c.path)).toEqual(["/", "/a", "/a/b"]);
  expect(crumbs("/")).toHaveLength(1);
});

test("what a pod answers is taken as it should be, or not at all", () => {
  for (const line of ["", "null", "[]", "1", '{"file":[]}', '{"files":[1]}', '{"differ":[null]}', '{"runs":{"a":1}}']) {
    expect(() => answerFrom(line), line).toThrow();
  }
  const a = answerFrom('{"end":"yes","files":{},"users":{"0":7,"__proto__":"x"},"more":5,"got":"x","file":{"kind":"<b>","size":"9","mode":1e9,"folder":1}}');
  expect(a).toMatchObject({ end: false, files: [], more: "", got: 0 });
  expect(a.file).toMatchObject({ kind: "f", size: 0, folder: false, name: "" });
  expect(a.users["0"]).toBe("");
  expect([answerFrom("{}").got, answerFrom('{"got":0}').got]).toEqual([null, 0]);
  const bytes = Uint8Array.from({ length: 20_000 }, (_, i) => i * 7);
  expect(bytesFrom(base64From(bytes))).toEqual(bytes);
});

test("files are worded as ls words them", () => {
  expect(modeWords(entry({ mode: 0o4751 }))).toBe("-rwsr-x--x");
  expect(modeWords(entry({ kind: "d", mode: 0o1777 }))).toBe("drwxrwxrwt");
  expect(modeWords(entry({ kind: "l", mode: 0o2644 }))).toBe("lrw-r-Sr--");
  expect(ownerWords(entry({ uid: 7, gid: 8 }), { 7: "jane" }, {})).toBe("jane:8");
  const files = [entry({ name: "b10" }), entry({ name: "b9" }), entry({ name: "z", kind: "d", folder: true })];
  expect(inOrder(files).map((f) => f.name)).toEqual(["z", "b9", "b10"]);
  expect(differenceWords({ name: "x", one: entry({}), how: [] }, "app", "dead")).toBe("only in app");
  expect(differenceWords({ name: "x", one: entry({}), two: entry({ size: 2048 }), how: ["contents", "mode"] }, "a", "b")).toBe("0 B and 2.0 KiB, -rw-r--r-- and -rw-r--r--");
});

test("another container is compared with its own image, and never with itself", () => {
  expect(["", "app", "dead", "app@image"].map((root) => besideOf("dead", root))).toEqual([undefined, "app", undefined, "dead@image"]);
});

// UI-04: whatever is in a file is text or numbers.
test("contents are text, or bytes in hexadecimal", () => {
  const encode = (text: string) => new TextEncoder().encode(text);
  expect(contentOf(encode("<script>\r\nü\u001b[2J"), false)).toEqual({ binary: false, text: "<script>\nü\\x1b[2J" });
  expect(contentOf(encode("ü").subarray(0, 1), true)).toEqual({ binary: false, text: "" });
  expect(contentOf(encode("ü").subarray(0, 1), false).binary).toBe(true);
  expect(contentOf(Uint8Array.of(0x7f, 0x45, 0), false)).toEqual({ binary: true, text: dump(Uint8Array.of(0x7f, 0x45, 0)) });
  expect(dump(Uint8Array.from({ length: 17 }, (_, i) => i + 0x40)).split("\n")).toEqual([
    "00000000  40 41 42 43 44 45 46 47  48 49 4a 4b 4c 4d 4e 4f  |@ABCDEFGHIJKLMNO|",
    "00000010  50                                                |P|",
  ]);
});

const apply = (one: string, two: string) => {
  const d = diff(one, two);
  const side = (which: "one" | "two") => d.filter((p) => p.in === "both" || p.in === which).flatMap((p) => p.lines).join("\n");
  expect(side("one")).toBe(one.replace(/\n$/, ""));
  expect(side("two")).toBe(two.replace(/\n$/, ""));
  return d.filter((p) => p.in !== "both").reduce((n, p) => n + p.lines.length, 0);
};

test("a comparison gives both texts again, by few lines", () => {
  expect(apply("a\nb\nc\n", "a\nc\n")).toBe(1);
  expect(apply("a\nb\nc\nd", "x\nb\nd\ny")).toBe(4);
  expect(apply("", "a\nb")).toBe(2);
  expect(apply("same\n", "same\n")).toBe(0);
  let seed = 7;
  const random = (n: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  for (let i = 0; i < 300; i++) {
    const text = () => Array.from({ length: 1 + random(12) }, () => "abc"[random(3)]).join("\n");
    apply(text(), text());
  }
  expect(apply(Array.from({ length: 2000 }, (_, i) => `a${i}`).join("\n"), Array.from({ length: 2000 }, (_, i) => `b${i}`).join("\n"))).toBe(4000);
});

test("of lines that are alike a few are drawn", () => {
  const lines = Array.from({ length: 20 }, (_, i) => String(i));
  const rows = rowsOf(diff(lines.join("\n"), lines.map((l) => (l === "10" ? "x" : l)).join("\n")));
  expect(rows.map((r) => r.sign + r.text)).toEqual(["…7 lines alike", " 7", " 8", " 9", "-10", "+x", " 11", " 12", " 13", "…6 lines alike"]);
});

// UI-08
test("the command shows the same", () => {
  const at = { namespace: "shop", pod: "web", container: "app", path: "/etc/a%20b", other: "", isFile: false, show: "" as const };
  expect(commandFor(at).at(-1)).toBe("/c/app/etc/a b/");
  expect(commandFor({ ...at, isFile: true })).toEqual(["wherry", "cp", "shop/web:/etc/a b", ".", "-c", "app"]);
  expect(commandFor({ ...at, path: "/", other: "dead" }).slice(-4)).toEqual(["diff", "-rq", "/c/app", "/c/dead"]);
  expect(commandFor({ ...at, show: "changed", startedAt: "2026-11-29T15:00:00Z" }, Date.parse("2026-11-29T15:01:30Z")).slice(-2)).toEqual(["-cmin", "-2"]);
  expect(commandFor({ ...at, show: "changed" }).at(-1)).toBe("-1");
  expect(commandFor({ ...at, container: "app@image", isFile: true }).slice(-2)).toEqual(["cat", "/c/.wherry/app/image/etc/a b"]);
  expect(commandFor({ ...at, other: "app@image" }).slice(-2)).toEqual(["/c/app/etc/a b", "/c/.wherry/app/image/etc/a b"]);
});

test("a talk is an image exec without a terminal, which writes only if it is to", () => {
  const place = { namespace: "shop", pod: "web", container: "app" };
  expect(talkPath(place)).toBe("/api/v1/namespaces/shop/pods/web/exec?image=wherry.dev%2Ftoolbox&userOf=app&command=%2Fbin%2Ftoolbox&command=cp-look&stdin=true&stdout=true&stderr=true");
  expect(talkPath({ ...place, writable: true })).toContain("&writable=true");
});
