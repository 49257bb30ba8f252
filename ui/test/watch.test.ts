// SPDX-License-Identifier: Apache-2.0

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Lines } from "../src/api/lines";
import type { KubeObject, WatchEvent } from "../src/api/types";
import { applyEvents, follow, waitAfter, type Items } from "../src/api/watch";

const object = (name: string, resourceVersion: string): KubeObject => ({ metadata: { name, namespace: "n", resourceVersion, managedFields: [1] } });
const event = (type: string, name: string, version: string): WatchEvent<KubeObject> => ({ type, object: object(name, version) });
const names = (items: Items<KubeObject>) => [...items.values()].map((o) => `${o.metadata.name}@${o.metadata.resourceVersion}`);

// UI-05
test("events make the list what it is, and what did not change stays the same object", () => {
  const first = applyEvents(new Map(), "1", [event("ADDED", "a", "2"), event("ADDED", "b", "3")]);
  const then = applyEvents(first.items, first.version, [event("MODIFIED", "a", "4"), event("DELETED", "b", "5"), event("ADDED", "c", "6")]);
  expect(names(first.items)).toEqual(["a@2", "b@3"]);
  expect(names(then.items)).toEqual(["a@4", "c@6"]);
  expect(then.version).toBe("6");
  expect(applyEvents(then.items, "6", [event("MODIFIED", "c", "7")]).items.get("n/a")).toBe(then.items.get("n/a"));
  expect(then.items.get("n/a")!.metadata.managedFields).toBeUndefined();
});

test("a bookmark moves the version and nothing else", () => {
  const { items, version } = applyEvents(new Map([["n/a", object("a", "1")]]), "1", [event("BOOKMARK", "", "9")]);
  expect([names(items), version]).toEqual([["a@1"], "9"]);
});

test("410 lists again, another error is a problem, and what came before it stays", () => {
  const error = (code: number) => ({ type: "ERROR", object: { kind: "Status", code, message: "words" } }) as unknown as WatchEvent<KubeObject>;
  expect(applyEvents(new Map(), "1", [event("ADDED", "a", "2"), error(410)])).toMatchObject({ expired: true });
  const other = applyEvents(new Map(), "1", [event("ADDED", "a", "2"), error(500)]);
  expect([other.expired, other.problem?.message, names(other.items)]).toEqual([false, "words", ["a@2"]]);
});

test("waits grow, and not without bound", () => {
  expect([0, 1, 2, 3].map((n) => waitAfter(n, 1))).toEqual([250, 500, 1000, 2000]);
  expect(waitAfter(50, 0.999)).toBeLessThanOrEqual(15_000);
  expect(waitAfter(50, 0)).toBe(7500);
});

test("lines come whole, however they are cut", () => {
  const lines = new Lines();
  expect([lines.add("a\nb"), lines.add("c\n\n"), lines.add("d"), lines.end(), lines.end()]).toEqual([["a"], ["bc", ""], [], ["d"], []]);
  const short = new Lines(4);
  expect(short.add("123456789")).toEqual(["1234…"]);
  expect(short.add("ab\n")).toEqual(["ab"]);
});

/** A server that answers by a script; there are no WebSockets here, so that streams come by requests. */
function serve(answers: ((path: string) => Response)[]) {
  const asked: string[] = [];
  vi.stubGlobal("fetch", (path: string) => {
    asked.push(path);
    const answer = answers.shift();
    return answer ? Promise.resolve(answer(path)) : new Promise(() => undefined);
  });
  return asked;
}

const json = (value: unknown, status = 200) => new Response(JSON.stringify(value), { status });
const list = (version: string, ...items: KubeObject[]) => () => json({ metadata: { resourceVersion: version }, items });
const watched = (...events: unknown[]) => () => new Response(events.map((e) => JSON.stringify(e) + "\n").join(""));

beforeEach(() => {
  vi.useFakeTimers();
  const target = { addEventListener: () => undefined, removeEventListener: () => undefined };
  vi.stubGlobal("window", target);
  vi.stubGlobal("document", target);
  vi.stubGlobal("location", { href: "http://localhost/ui/" });
  vi.stubGlobal("WebSocket", class {
    onclose?: () => void;
    constructor() {
      queueMicrotask(() => this.onclose?.());
    }
    close() {}
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

// UI-05: lists come back by themselves after a cut, from where they were; and after 410 from the beginning.
test("follow lists, watches, goes on after a cut, and lists again after 410", async () => {
  const asked = serve([
    list("10", object("a", "9")),
    watched(event("ADDED", "b", "11")),
    () => { throw new TypeError("connection refused"); },
    watched({ type: "ERROR", object: { code: 410 } }),
    list("30", object("c", "29")),
  ]);
  const stop = new AbortController();
  const seen: string[][] = [];
  const connected: boolean[] = [];
  void follow("/api/v1/pods", {}, {
    changed: (items) => seen.push(names(items)), connection: (problem) => connected.push(problem === null), refused: () => seen.push(["refused"]),
  }, stop.signal);
  await vi.advanceTimersByTimeAsync(60_000);
  stop.abort();
  expect(seen).toEqual([["a@9"], ["a@9", "b@11"], ["a@9", "b@11"], ["c@29"]]);
  expect(connected).toContain(false);
  expect(connected.at(-1)).toBe(true);
  const watches = asked.filter((p) => p.includes("watch=true")).map((p) => new URL(p, "http://x").searchParams.get("resourceVersion"));
  expect(watches).toEqual(["10", "11", "11", "30"]);
});

// UI-10: a long list is seen from its first page on; one that is listed again is not shown in parts.
test("the first pages of a list are shown at once", async () => {
  const page = (version: string, next: string, ...items: KubeObject[]) => () => json({ metadata: { resourceVersion: version, continue: next }, items });
  const asked = serve([
    page("9", "more", object("a", "1")), page("9", "", object("b", "2")), watched({ type: "ERROR", object: { code: 410 } }),
    page("20", "more", object("c", "3")), page("20", "", object("d", "4")),
  ]);
  const stop = new AbortController();
  const seen: string[][] = [];
  void follow("/api/v1/pods", {}, { changed: (items) => seen.push(names(items)), connection: () => undefined, refused: () => undefined }, stop.signal);
  await vi.advanceTimersByTimeAsync(20_000);
  stop.abort();
  expect(seen).toEqual([["a@1"], ["a@1", "b@2"], ["a@1", "b@2"], ["c@3", "d@4"]]);
  expect(asked[1]).toContain("continue=more");
});

// UI-02: the server's words are what is shown.
test("a refusal is told in the server's words", async () => {
  serve([() => json({ kind: "Status", message: 'pods is forbidden: User "jane" cannot list' }, 403)]);
  const stop = new AbortController();
  let words = "";
  void follow("/api/v1/pods", {}, { changed: () => undefined, connection: () => undefined, refused: (p) => (words = p.message) }, stop.signal);
  await vi.advanceTimersByTimeAsync(10);
  stop.abort();
  expect(words).toBe('pods is forbidden: User "jane" cannot list');
});
