// SPDX-License-Identifier: Apache-2.0

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { refusalFrom } from "../src/api/client";
import { commandLine } from "../src/frame/command";
import { href, routeOf } from "../src/frame/router";
import { spanOf } from "../src/frame/virtual";
import { matches, parseFilter, selectorOf } from "../src/pods/filter";
import { pathOf } from "../src/shell/session";
import { freeName, waysInto } from "../src/shell/ways";
import { channel, endFrom, frame, resizeFrame } from "../src/shell/wire";
import type { Pod } from "../src/api/types";

const source = new URL("../src/", import.meta.url).pathname;
const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((f) => /\.tsx?$/.test(f));

// UI-04: every string of the API is a text node.
test("nothing in the page makes markup of a string", () => {
  const forbidden = /dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|DOMParser|createContextualFragment/;
  expect(files.length).toBeGreaterThan(30);
  for (const file of files) {
    expect(readFileSync(join(source, file), "utf8"), file).not.toMatch(forbidden);
  }
});

// UI-01: nothing but this server is asked.
test("no address of another origin is in the page", () => {
  for (const file of files) {
    const text = readFileSync(join(source, file), "utf8").replaceAll("http://www.w3.org/2000/svg", "");
    expect(text, file).not.toMatch(/https?:\/\//);
  }
});

test("each source names its licence, and fits on a few screens", () => {
  for (const file of files) {
    const lines = readFileSync(join(source, file), "utf8").split("\n");
    expect(lines[0], file).toBe("// SPDX-License-Identifier: Apache-2.0");
    expect(lines.length, file).toBeLessThan(400);
  }
});

test("routes have no dots, whatever names have", () => {
  const to = href("pod/logs", { namespace: "shop", name: "web.1", container: undefined });
  expect(to).toBe("/ui/pod/logs?namespace=shop&name=web.1");
  expect(to.split("?")[0]).not.toContain(".");
  const route = routeOf("/ui/pod/logs", "?namespace=shop&name=web.1");
  expect([route.view, route.at.get("name")]).toEqual(["pod/logs", "web.1"]);
  expect(routeOf("/ui/", "").view).toBe("pods");
});

test("the filter takes words and labels", () => {
  const pod = { metadata: { name: "web-1", namespace: "shop", labels: { app: "web", constructor: "x" } } };
  const fits = (text: string) => matches(parseFilter(text), pod, "Running vm");
  expect(["", "WEB", "run", "app=web", "app==web", "app!=db", "!canary", "shop/web", "web app=web"].map(fits)).not.toContain(false);
  expect(["db", "app=db", "app!=web", "!app", "toString=x"].map(fits)).not.toContain(true);
  expect(selectorOf(parseFilter("web app=web !canary a!=b"))).toBe("app=web,!canary,a!=b");
});

test("commands are quoted for a shell", () => {
  expect(commandLine(["kubectl", "get", "-l", "a!=b", undefined, "", "it's", "x;rm"])).toBe(`kubectl get -l 'a!=b' 'it'\\''s' 'x;rm'`);
  // A terminal that one is pasted into gets nothing that it would obey.
  expect(commandLine(["cp", "a\x1b[201~\n\\'b\u202e\u{e0001}"])).toBe("cp $'a\\x1b[201~\\x0a\\\\\\'b\\u202e\\U000e0001'");
});

test("only the rows that are seen are drawn", () => {
  expect(spanOf(0, 300, 30, 2000)).toEqual({ from: 0, to: 18 });
  expect(spanOf(30_000, 300, 30, 2000)).toEqual({ from: 992, to: 1018 });
  expect(spanOf(1e9, 300, 30, 2000)).toEqual({ from: 1992 + 8, to: 2000 });
});

test("a refusal has the server's words, whatever it answers", () => {
  expect(refusalFrom(403, '{"kind":"Status","message":"no"}').message).toBe("no");
  expect(refusalFrom(502, "upstream is away\n").message).toBe("upstream is away");
  expect(refusalFrom(500, "").message).toContain("500");
  expect(refusalFrom(500, "null").message).toBe("null");
});

test("the wire: channels, sizes, ends", () => {
  expect([...frame(channel.stdin, new Uint8Array([65]))]).toEqual([0, 65]);
  expect(new TextDecoder().decode(resizeFrame(80, 24).subarray(1))).toBe('{"Width":80,"Height":24}');
  expect(endFrom('{"status":"Success"}')).toMatchObject({ code: 0 });
  expect(endFrom('{"status":"Failure","message":"x","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}')).toEqual({ code: 7, words: "ended with exit code 7" });
  expect(endFrom('{"status":"Failure","message":"no such file"}')).toEqual({ code: null, words: "no such file" });
  expect(endFrom("garbage")).toEqual({ code: null, words: "garbage" });
});

const pod: Pod = {
  metadata: { name: "web", namespace: "shop" },
  spec: { nodeName: "vm", containers: [{ name: "app" }, { name: "dead" }], ephemeralContainers: [{ name: "debug" }, { name: "debug-2" }] },
  status: {
    containerStatuses: [{ name: "app", state: { running: {} } }, { name: "dead", state: { terminated: { exitCode: 1 } } }],
    ephemeralContainerStatuses: [{ name: "debug", state: { running: {} } }, { name: "debug-2", state: { terminated: { exitCode: 0 } } }],
  },
};

// UI-02: what the reader may not do is not offered.
test("ways into a pod are those that rights and state leave open", () => {
  const ids = (rights: object, of = pod) => waysInto(of, rights, "", "general").map((w) => w.id);
  const all = { exec: true, attach: true, debug: true, imageExec: true, wherry: true };
  expect(ids(all)).toEqual(["exec", "debug", "visit"]);
  expect(ids({})).toEqual([]);
  expect(ids({ ...all, exec: false })).toEqual([]);
  expect(ids({ ...all, wherry: false })).toEqual(["exec"]);
  expect(ids({ ...all, debug: false, imageExec: false })).toEqual(["exec"]);
  const over = { ...pod, status: { containerStatuses: [{ name: "app", state: { terminated: { exitCode: 1 } } }] } };
  expect(ids(all, over)).toEqual(["visit"]);
  expect(freeName(pod)).toBe("debug-2");
});

test("a session asks for a terminal, and each word of a command stands for itself", () => {
  const path = pathOf({ namespace: "shop", pod: "web", title: "", way: "exec", stays: false, parameters: { container: "app", command: ["/bin/sh", "-l"] } });
  expect(path).toBe("/api/v1/namespaces/shop/pods/web/exec?container=app&command=%2Fbin%2Fsh&command=-l&stdin=true&stdout=true&tty=true");
});
