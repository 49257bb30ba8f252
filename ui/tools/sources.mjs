// SPDX-License-Identifier: Apache-2.0

// The digest of what the page is built from. --write DIR writes it beside the built page, as DIR/SOURCES; without it is printed.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const root = new URL("..", import.meta.url).pathname;
const single = ["index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts"];
const sources = readdirSync(join(root, "src"), { recursive: true, withFileTypes: true })
  .filter((f) => f.isFile())
  .map((f) => join(f.parentPath, f.name).slice(root.length));

// The same lines as `sha256sum` prints, so that a shell without node can compare them (check.sh).
const lines = [...single, ...sources]
  .map((name) => `${createHash("sha256").update(readFileSync(join(root, name))).digest("hex")}  ${name}`)
  .sort();
const digest = createHash("sha256").update(lines.join("\n") + "\n").digest("hex") + "\n";

if (process.argv[2] === "--write") {
  writeFileSync(join(process.argv[3], "SOURCES"), digest);
} else {
  process.stdout.write(digest);
}
