// SPDX-License-Identifier: Apache-2.0

import { expect, test } from "vitest";
import { parse } from "yaml";
import { kindOf, pathIn, podKind, serviceKind, workloadKinds } from "../src/object/kinds";
import { withoutManagedFields } from "../src/object/yaml";
import { yamlOf } from "../src/object/write";
import { hrefOf } from "../src/workloads/treeview";

const pod = {
  spec: { containers: [{ name: "app", args: ["a: b", "yes", "0x1f", "", "1:30", "2026-11-29T12:00:00Z"], command: ["sh", "-c", "echo 1\necho '2'\n"] }], nodeName: null },
  apiVersion: "v1", kind: "Pod", metadata: { name: "web", annotations: {}, labels: { on: "true", app: "web" } }, status: { conditions: [] },
};

test("YAML is written as kubectl writes it", () => {
  expect(yamlOf(pod)).toBe(`apiVersion: v1
kind: Pod
metadata:
  annotations: {}
  labels:
    app: web
    "on": "true"
  name: web
spec:
  containers:
  - args:
    - "a: b"
    - "yes"
    - "0x1f"
    - ""
    - "1:30"
    - "2026-11-29T12:00:00Z"
    command:
    - sh
    - -c
    - |
      echo 1
      echo '2'
    name: app
  nodeName: null
status:
  conditions: []
`);
});

const nasty = [
  "\u202etxt.exe", "a\u0000b", "\u001b[31mred", "\u007f", "\u0085", "\ufeffx", "a\u2028b", "tab\tand\r\nline", "\u{e0041}", "<img src=x>", "# no", "- no", "? no", "%no", "@no", "`no", "*a", "&a",
  "!!str x", "'", '"', "\\", " lead", "trail ", "\n", "a\n\n", "  a\nb", "null", "~", "1e3", ".inf", "0o7", "1_000", "=", "<<", "y", "long ".repeat(60), "long\u200b ".repeat(60) + "\nend",
];

// UI-04: whatever an object holds comes back from the text as it was, and nothing in the text acts on who reads it.
test("any string comes through", () => {
  const object = { list: nasty, map: Object.fromEntries(nasty.map((s, i) => [`k${i}${s}`, s])), same: [pod, pod] };
  const text = yamlOf(object);
  expect(parse(text, { version: "1.1" })).toEqual(object);
  expect(text).not.toMatch(/(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  expect(text).not.toMatch(/[&*]a1\b/); // no anchors
  expect(yamlOf({ a: "\u202e" })).toBe('a: "\\u202e"\n');
});

test("without managed fields, the rest of the object is as it was", () => {
  const object = { kind: "Pod", metadata: { name: "web", managedFields: [{}], uid: "u" } };
  expect(withoutManagedFields(object)).toEqual({ kind: "Pod", metadata: { name: "web", uid: "u" } });
  expect(object.metadata.managedFields).toHaveLength(1);
});

test("kinds that are shown as YAML are reached from trees", () => {
  expect([pathIn("a/b", workloadKinds[0]!), pathIn("", serviceKind), pathIn("n", podKind)]).toEqual(["/apis/apps/v1/namespaces/a%2Fb/deployments", "/api/v1/services", "/api/v1/namespaces/n/pods"]);
  expect(["Deployment", "Service", "Pod", "Secret", "__proto__", ""].map((k) => kindOf(k)?.resource)).toEqual(["deployments", "services", undefined, undefined, undefined, undefined]);
  const node = { key: "", name: "web.1", namespace: "n", state: "", tone: "good", why: "", children: [] } as const;
  expect(hrefOf({ ...node, kind: "Job", children: [] })).toBe("/ui/object?kind=Job&namespace=n&name=web.1");
  expect(hrefOf({ ...node, kind: "Endpoint", children: [] })).toBeUndefined();
  expect(hrefOf({ ...node, kind: "Endpoint", children: [], pod: { metadata: { name: "p" } } })).toBe("/ui/pod?namespace=n&name=p");
});
