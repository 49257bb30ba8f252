// SPDX-License-Identifier: Apache-2.0

import { expect, test } from "vitest";
import type { KubeEvent, Pod } from "../src/api/types";
import { parseFilter } from "../src/pods/filter";
import { enteredOf, entriesOf, type DebugRun } from "../src/record/entries";
import { auditFor, commandFor, filterBy, fits } from "../src/record/filter";
import { sessionsOf } from "../src/record/sessions";

const at = (minute: number) => `2026-11-29T12:${String(minute).padStart(2, "0")}:00Z`;

const run = (name: string, minute: number, spec: DebugRun["spec"], status: DebugRun["status"] = {}): DebugRun => ({
  metadata: { name, namespace: "shop", uid: name, creationTimestamp: at(minute) },
  spec: { kind: "ImageExec", pod: { name: "web", uid: "u1" }, image: "tools:1", user: "jane", ...spec }, status,
});

const pod = (name: string, uid: string, reason?: string, message = "", minute = 0): Pod => ({
  metadata: { name, namespace: "shop", uid },
  status: { conditions: reason ? [{ type: "wherry.dev/Tainted", status: "True", reason, message, lastProbeTime: at(minute), lastTransitionTime: at(0) }] : [] },
});

const event = (reason: string, uid: string, message: string, minute: number, more: Partial<KubeEvent> = {}): KubeEvent => ({
  metadata: { name: `${uid}.${reason}`, namespace: "shop", ...more.metadata }, reason, message, firstTimestamp: at(minute), lastTimestamp: at(minute),
  involvedObject: { kind: "Pod", name: "web", namespace: "shop", uid, fieldPath: more.involvedObject?.fieldPath }, count: more.count,
});

// UI-08: what several sources say of the same is one line, and the newest is first.
test("the record is put together, and each thing is in it once", () => {
  const runs = [
    run("one", 1, { kind: "EphemeralContainer", container: "debug", target: "app", command: ["sh"], args: ["-i"] }, { startedAt: at(1), finishedAt: at(3), exitCode: 0 }),
    run("two", 5, { user: "eve", command: ["cat", "a b"], writable: true }, { startedAt: at(5) }),
  ];
  const pods = [pod("web", "u1", "ImageExec", `image exec by eve at ${at(5)}`, 5), pod("api", "u2", "Exec", `exec by jane into main at ${at(7)}`, 7), pod("clean", "u3")];
  const events = [
    event("DebugContainerAdded", "u1", "jane added debug container debug with image tools:1", 1, { involvedObject: { fieldPath: "spec.ephemeralContainers{debug}" } }),
    event("ImageExec", "u1", "eve runs cat a b with image tools:1 in the pod", 5),
    event("ImageExec", "gone", "joe runs id with image tools:1 in the pod", 2, { count: 3 }), // its record was deleted
    event("Pulled", "u1", "image", 4),
  ];
  const lines = entriesOf(runs, pods, events).map((e) => [e.how, e.user, e.pod, e.what, e.command, e.end].join("|"));
  expect(lines).toEqual([
    `exec||api|exec by jane into main at ${at(7)}||`,
    "image exec|eve|web|of tools:1 may write|cat a b|running",
    "image exec||web|joe runs id with image tools:1 in the pod (3 times)||",
    "debug container|jane|web|debug of tools:1 beside app|sh -i|exit 0",
  ]);
  expect(enteredOf(pods).map((e) => e.pod)).toEqual(["api", "web"]);
  // Without the right to read records, events and conditions are what is left.
  expect(entriesOf([], pods, events)).toHaveLength(4);
});

test("a pod that has the name of one that was debugged has not been entered for that", () => {
  const runs = [run("one", 1, { pod: { name: "web", uid: "old" } })];
  expect(entriesOf(runs, [pod("web", "new", "ImageExec", "image exec by eve at some time", 2)], [])).toHaveLength(2);
});

test("how a run ended, or how far it is", () => {
  const end = (status: DebugRun["status"]) => {
    const [e] = entriesOf([run("x", 1, {}, status)], [], []);
    return `${e!.end} ${e!.tone}`;
  };
  expect(end({})).toBe("pending busy");
  expect(end({ reason: "ErrImagePull" })).toBe("ErrImagePull bad");
  expect(end({ startedAt: at(1) })).toBe("running busy");
  expect(end({ startedAt: at(1), finishedAt: at(2), exitCode: 3 })).toBe("exit 3 bad");
  expect(end({ startedAt: at(1), finishedAt: at(2), reason: "PodGone" })).toBe("PodGone idle");
  expect(end({ finishedAt: at(2), reason: "Refused" })).toBe("Refused bad");
});

// UI-04: kinds, reasons and annotations are others' words, whatever they are.
test("odd objects are lines too", () => {
  const odd = { metadata: { name: "odd" }, spec: { kind: "constructor" } } as DebugRun;
  expect(entriesOf([odd], [pod("p", "u", "__proto__", "<b>x</b>")], [event("ImageExec", "u9", "", 1)]).map((e) => e.how)).toEqual(["image exec", "__proto__", "constructor"]);
  const with_ = (text: string) => sessionsOf([event("DebugSessionStarted", "u", "", 1, { metadata: { name: "e", annotations: { "debug.wherry.dev/session": text } } })]);
  expect(["", "null", "[]", "1", "{", '{"id":5}'].flatMap(with_)).toEqual([]);
  expect(with_('{"id":"s","as":"__proto__","command":[1,"a"],"exitCode":"0"}')[0]!.spec).toMatchObject({ kind: "ImageExec", command: ["a"], image: "wherry.dev/toolbox" });
});

test("on a cluster that is not Wherry's, the beginning and the end of a session are one line", () => {
  const noted = (reason: string, minute: number, note: object) => event(reason, "u", "", minute, { metadata: { name: reason, annotations: { "debug.wherry.dev/session": JSON.stringify({ id: "s1", as: "shell", container: "app", by: "jane", ...note }) } } });
  const [one, ...more] = entriesOf([], [], [noted("DebugSessionEnded", 9, { exitCode: 2 }), noted("DebugSessionStarted", 4, {})]);
  expect(more).toEqual([]);
  expect([one!.at, one!.user, one!.how, one!.what, one!.end, one!.record]).toEqual([at(4), "jane", "shell", "of wherry.dev/toolbox beside app", "exit 2", undefined]);
  const [late] = entriesOf([], [], [noted("DebugSessionEnded", 9, { why: "called off" })]);
  expect([late!.at, late!.end]).toEqual([at(9), "called off"]);
});

test("filters by person, pod and words", () => {
  const all = entriesOf([run("a", 1, { user: "jane", command: ["id"] }), run("b", 2, { user: "system:serviceaccount:shop:bot", pod: { name: "api", uid: "u2" } })],
    [pod("db", "u3", "Exec", `exec by jane into main at ${at(3)}`, 3)], [event("ImageExec", "u4", "jane runs id with image x in the pod", 4)]);
  const found = (text: string) => all.filter((e) => fits(parseFilter(text), e)).map((e) => e.key.replace("shop/", ""));
  expect(found("user=jane")).toEqual(["event u4.ImageExec", "pod db", "run a"]);
  expect(found("user=jan")).toEqual([]);
  expect(found("user!=jane")).toEqual(["run b"]);
  expect(found("user=system:serviceaccount:shop:bot")).toEqual(["run b"]);
  expect(found("pod=api")).toEqual(["run b"]);
  expect(found("image-exec")).toEqual([]);
  expect(found("exec id")).toEqual(["event u4.ImageExec", "run a"]);
  expect(found("app=web")).toEqual([]);
  expect([filterBy("user", "jane"), filterBy("user", "jane doe"), filterBy("pod", "")]).toEqual(["user=jane", undefined, undefined]);
});

// UI-08
test("the commands that show the same", () => {
  const command = (namespace: string, text: string, show: "" | "pods" = "", wherry = true) => commandFor(namespace, parseFilter(text), show, wherry).join(" ");
  expect(command("shop", "")).toBe("wherry debug history -n shop");
  expect(command("shop", "pod=web x")).toBe("wherry debug history web -n shop");
  expect(command("shop", "pod=web user=jane")).toBe("wherry kubectl get debugruns -n shop -o wide --field-selector spec.pod.name=web,spec.user=jane");
  expect(command("", "")).toBe("wherry kubectl get debugruns -A -o wide");
  expect(command("", "user!=jane")).toBe("wherry kubectl get debugruns -A -o wide");
  expect(command("", "", "", false)).toBe("wherry kubectl get events -A --field-selector reason=DebugSessionStarted");
  expect(command("shop", "user=jane", "", false)).toBe("wherry debug history -n shop");
  expect(command("shop", "pod=web", "pods")).toMatch(/^wherry kubectl get pods web -n shop -o custom-columns=/);
  expect(auditFor("shop", parseFilter("pod=web user=jane")).join(" ")).toBe("sudo wherry audit web -n shop --user jane");
  expect(auditFor("", parseFilter("pod=web")).join(" ")).toBe("sudo wherry audit web -A");
  expect(auditFor("", parseFilter("")).join(" ")).toBe("sudo wherry audit");
});
