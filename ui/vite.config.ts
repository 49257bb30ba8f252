// SPDX-License-Identifier: Apache-2.0

import { defineConfig } from "vitest/config";

// The page is served below /ui/ and built into the Go package that embeds it. Nothing is inlined: the page's
// Content-Security-Policy lets nothing run or be styled that is not a file of its own.
export default defineConfig({
  base: "/ui/",
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
