// SPDX-License-Identifier: Apache-2.0

import { defineConfig } from "vitest/config";

const strict = new URL("src/shell/strict.ts", import.meta.url).pathname;

/** strictTerminal has xterm.js style its terminal without inline styles; see src/shell/strict.ts. */
function strictTerminal() {
  const changes: [RegExp, number, string][] = [
    [/[\w$.]+\.createElement\("style"\)/g, 3, "wherryStyleElement()"],
    [/([\w$]+)\.setAttribute\("style",`\$\{\1\.getAttribute\("style"\)\|\|""\}\$\{([\w$]+)\};`\)/g, 1, "wherryAddStyle($1,$2)"],
  ];
  return {
    name: "strict-terminal",
    transform(code: string, id: string) {
      if (!id.endsWith("@xterm/xterm/lib/xterm.mjs")) {
        return null;
      }
      for (const [pattern, times, by] of changes) {
        const found = code.match(pattern)?.length ?? 0;
        if (found !== times) {
          throw new Error(`xterm.js has ${found} of ${pattern}, expected ${times}: read how this version makes its styles, and mend vite.config.ts`);
        }
        code = code.replace(pattern, by);
      }
      return { code: `import {styleElement as wherryStyleElement,addStyle as wherryAddStyle} from ${JSON.stringify(strict)};\n${code}`, map: null };
    },
  };
}

// The page is served below /ui/ and built into the Go package that embeds it. Nothing is inlined: the page's
// Content-Security-Policy lets nothing run or be styled that is not a file of its own.
export default defineConfig({
  base: "/ui/",
  plugins: [strictTerminal()],
  build: {
    outDir: "../internal/ui/dist",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    target: "es2022",
    reportCompressedSize: false,
  },
  test: { include: ["test/**/*.test.ts"] },
});
