// SPDX-License-Identifier: Apache-2.0

// The terminal, loaded when the first shell is opened.

import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { isDark } from "../frame/theme";

/** Screen is a terminal in an element that can be put anywhere in the page, and put away. */
export interface Screen {
  host: HTMLElement;
  columns(): number;
  rows(): number;
  write(data: Uint8Array | string): void;
  typed(f: (text: string) => void): void;
  resized(f: (columns: number, rows: number) => void): void;
  /** fit makes the terminal as large as its element. */
  fit(): void;
  focus(): void;
  dispose(): void;
}

const light = {
  background: "#ffffff", foreground: "#1c2128", cursor: "#1c2128", cursorAccent: "#ffffff", selectionBackground: "#b6d4f7",
  black: "#1c2128", red: "#b4232c", green: "#17713a", yellow: "#8a5a00", blue: "#0b5cad", magenta: "#8b2fa8", cyan: "#0d6b73", white: "#5b6472",
  brightBlack: "#57606a", brightRed: "#c93039", brightGreen: "#1c8a4a", brightYellow: "#9a6700", brightBlue: "#1f6feb", brightMagenta: "#a145c0", brightCyan: "#12818b", brightWhite: "#1c2128",
};
const dark = { background: "#15191f", foreground: "#e3e7ec", cursor: "#e3e7ec", cursorAccent: "#15191f", selectionBackground: "#2f4f78" };

/** makeScreen makes a terminal. leave is called when the reader wants to go back to the page by the keyboard. */
export function makeScreen(leave: () => void): Screen {
  const host = document.createElement("div");
  host.className = "terminal-host";
  const terminal = new Terminal({
    fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"),
    fontSize: 13,
    scrollback: 10_000,
    cursorBlink: false,
    screenReaderMode: true,
    theme: isDark() ? dark : light,
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.attachCustomKeyEventHandler((event) => {
    if (event.type === "keydown" && event.ctrlKey && event.key === "F6") {
      event.preventDefault();
      leave();
      return false;
    }
    return true;
  });
  let opened = false;
  return {
    host,
    columns: () => terminal.cols,
    rows: () => terminal.rows,
    write: (data) => terminal.write(data),
    typed: (f) => void terminal.onData(f),
    resized: (f) => void terminal.onResize(({ cols, rows }) => f(cols, rows)),
    fit: () => {
      if (!host.isConnected) {
        return;
      }
      if (!opened) {
        opened = true;
        terminal.open(host);
      }
      terminal.options.theme = isDark() ? dark : light;
      fit.fit();
    },
    focus: () => terminal.focus(),
    dispose: () => terminal.dispose(),
  };
}
