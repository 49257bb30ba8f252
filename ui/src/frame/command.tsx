// SPDX-License-Identifier: Apache-2.0

// The command that shows the same as a view, to copy (UI-08).

import { useContext } from "preact/hooks";
import { Page } from "./context";
import { useCopy } from "./copy";

// Controls, what changes the direction of text, and ends of lines: pasted as they are, a terminal would obey them.
const odd = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/** word quotes a word for a shell where it has to be. */
export function word(text: string): string {
  if (odd.test(text)) {
    const escaped = [...text].map((c) => (c === "'" || c === "\\" ? "\\" + c : odd.test(c) ? escapeOf(c.codePointAt(0)!) : c));
    return `$'${escaped.join("")}'`;
  }
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function escapeOf(code: number): string {
  const [letter, digits] = code < 0x80 ? ["x", 2] as const : code < 0x10000 ? ["u", 4] as const : ["U", 8] as const;
  return `\\${letter}${code.toString(16).padStart(digits, "0")}`;
}

/** commandLine joins the words of a command, without those that are empty or missing. */
export function commandLine(words: (string | undefined)[]): string {
  return words
    .filter((w): w is string => Boolean(w))
    .map(word)
    .join(" ");
}

interface Properties {
  words: (string | undefined)[];
  elsewhere?: boolean; // it is for the server's machine, where the reader's kubeconfig is not
}

/** Command shows a command with a button that copies it. The kubeconfig and context of the page are added to it. */
export function Command({ words, elsewhere }: Properties) {
  const { session } = useContext(Page);
  const [told, copy] = useCopy();
  const { kubeconfig, context } = (!elsewhere && session.command) || {};
  const at = words.indexOf("--");
  const flags = [kubeconfig && "--kubeconfig", kubeconfig, context && "--context", context];
  const whole = at < 0 ? [...words, ...flags] : [...words.slice(0, at), ...flags, ...words.slice(at)];
  return (
    <div class="command">
      <code title={commandLine(whole)}>{commandLine(words)}</code>
      <button type="button" class="quiet" onClick={() => void copy(commandLine(whole))} aria-label="Copy the command that shows the same">
        Copy
      </button>
      <span role="status" class="told">{told}</span>
    </div>
  );
}
