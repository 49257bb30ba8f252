// SPDX-License-Identifier: Apache-2.0

import { useState } from "preact/hooks";
import { providerHref, signInWith, type Invitation } from "../api/session";

/** SignIn is what is shown to somebody whom the server does not know. */
export function SignIn({ how, done }: { how: Invitation; done: () => void }) {
  return (
    <main class="alone">
      <h1>Wherry</h1>
      {how.problem && <p role="alert" class="bad">{how.problem}</p>}
      {how.provider && <Provider name={how.provider} />}
      {how.signIn === "token" ? <TokenForm done={done} /> : <NewLink retry={done} />}
    </main>
  );
}

/** Provider leads to an identity provider; where it leads back to is what was asked for. */
function Provider({ name }: { name: string }) {
  return (
    <>
      <p><a class="button primary" href={providerHref(location.pathname + location.search)}>Sign in at {name}</a></p>
      <p class="dim">or</p>
    </>
  );
}

function NewLink({ retry }: { retry: () => void }) {
  return (
    <>
      <p>You are not signed in. A link signs in once, within five minutes. Get a new one where you started this page:</p>
      <pre><code>wherry ui</code></pre>
      <p class="dim">If you have signed in by another tab of this browser:</p>
      <button type="button" onClick={retry}>Look again</button>
    </>
  );
}

function TokenForm({ done }: { done: () => void }) {
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const field = (event.currentTarget as HTMLFormElement).elements.namedItem("token") as HTMLInputElement;
    setBusy(true);
    try {
      await signInWith(field.value.trim());
      field.value = "";
      done();
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form onSubmit={submit}>
      <label for="token">Token of a service account or user</label>
      <input id="token" name="token" type="password" autocomplete="off" required spellcheck={false} aria-describedby="token-help" />
      <button disabled={busy}>Sign in</button>
      {problem && <p role="alert" class="bad">{problem}</p>}
      <p id="token-help" class="dim">
        One that lasts an hour: <code>wherry kubectl create token NAME -n NAMESPACE</code>. It stays in the server's memory
        until you sign out; this browser keeps only a cookie.
      </p>
    </form>
  );
}
