// SPDX-License-Identifier: Apache-2.0

import type { Shade, Sign } from "./picture";

/** What a shade is called and painted as; the same as in `wherry timeline -o svg`. */
export const inks: Record<Shade, { name: string; fill: string }> = {
  quiet: { name: "runs, not started", fill: "#f2c94c" },
  up: { name: "runs, not ready", fill: "#8fd0f0" },
  serving: { name: "ready", fill: "#27ae60" },
  pause: { name: "back-off", fill: "#f0a8a2" },
  volumes: { name: "volumes", fill: "#bb6bd9" },
  sandbox: { name: "sandbox", fill: "#5d7690" },
  pull: { name: "pull", fill: "#2d6fdb" },
  create: { name: "create", fill: "#d7b98e" },
  start: { name: "start", fill: "#a0672f" },
  postStart: { name: "postStart", fill: "#e84393" },
  preStop: { name: "preStop", fill: "#8e4fae" },
  stop: { name: "stopping", fill: "#f2994a" },
  leave: { name: "take-down", fill: "#828282" },
};

export const signs: Record<Sign, { name: string; fill: string; text: string }> = {
  passed: { name: "probe passed", fill: "#1c8a4a", text: "✓" },
  done: { name: "exit 0", fill: "#1c8a4a", text: "0" },
  died: { name: "non-zero exit code", fill: "#d33a2c", text: "!" },
  failed: { name: "failed", fill: "#d33a2c", text: "✗" },
};
