// SPDX-License-Identifier: Apache-2.0

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { onSignedOut } from "../api/client";
import { whoIsThere, type Known } from "../api/session";
import { Stores } from "../api/store";
import { Sessions } from "../shell/session";
import { PodsView } from "../pods/list";
import { Collector } from "../machine/collector";
import { MachineView } from "../machine/view";
import { kindOf } from "../object/kinds";
import { ObjectView } from "../object/view";
import { PodView } from "../pod/view";
import { RecordView } from "../record/view";
import { ServicesView, WorkloadsView } from "../workloads/view";
import { Page } from "./context";
import { Header } from "./header";
import { Help } from "./help";
import { followLinks, useRoute } from "./router";
import { SignIn } from "./signin";

/** App is the page: who is there, then the view that the address names. */
export function App() {
  const stores = useMemo(() => new Stores(), []);
  const sessions = useMemo(() => new Sessions(), []);
  const figures = useMemo(() => new Collector(), []);
  const [known, setKnown] = useState<Known | null>(null);
  const ask = () => void whoIsThere().then((answer) => {
    if ("signIn" in answer) { // what is on the page is the reader's who has left
      stores.clear();
      figures.clear();
      sessions.clear();
    }
    setKnown(answer);
  });
  useEffect(() => {
    ask();
    const stopLinks = followLinks();
    // The API may refuse for a while what the page's own session is good for: its lists say so, and try again.
    const stopSession = onSignedOut(ask);
    return () => {
      stopLinks();
      stopSession();
    };
  }, []);
  // A server that is away when the page opens is asked again until it is there.
  const away = known !== null && "away" in known;
  useEffect(() => {
    if (!away) {
      return;
    }
    const timer = setInterval(ask, 2000);
    return () => clearInterval(timer);
  }, [away]);
  if (!known) {
    return <header class="top"><span class="brand">Wherry</span></header>;
  }
  if ("away" in known) {
    return (
      <main class="alone">
        <h1>Wherry</h1>
        <p role="status">Not connected; trying again: {known.away}</p>
      </main>
    );
  }
  if (!("session" in known)) {
    return <SignIn how={known} done={ask} />;
  }
  return (
    <Page.Provider value={{ session: known.session, stores, sessions, figures }}>
      <Frame signedOut={ask} stores={stores} />
    </Page.Provider>
  );
}

function Frame({ stores, signedOut }: { stores: Stores; signedOut: () => void }) {
  const route = useRoute();
  const [help, setHelp] = useState(false);
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      if (event.key === "?" && !typing(event.target)) {
        event.preventDefault();
        setHelp(true);
      }
    };
    window.addEventListener("keydown", key);
    return () => window.removeEventListener("keydown", key);
  }, []);
  // Who opens a view by the keyboard goes on from its beginning, and hears of it: what had the focus is no longer there.
  const first = useRef(true);
  useEffect(() => {
    if (!first.current && (document.activeElement === document.body || document.activeElement === null)) {
      document.getElementById("main")?.focus();
    }
    first.current = false;
  }, [route.view]);
  return (
    <div class="frame">
      <a class="skip" href="#main">Skip to the content</a>
      <Header route={route} signedOut={signedOut} help={() => setHelp(true)} />
      <Connection stores={stores} />
      <main id="main" tabIndex={-1}>
        <View view={route.view} at={route.at} />
      </main>
      {help && <Help close={() => setHelp(false)} />}
    </div>
  );
}

function View({ view, at }: { view: string; at: URLSearchParams }) {
  const [kind, tab] = view.split("/");
  if (kind === "pods") {
    return <PodsView at={at} />;
  }
  if (kind === "workloads") {
    return <WorkloadsView at={at} />;
  }
  if (kind === "services") {
    return <ServicesView at={at} />;
  }
  if (kind === "nodes") {
    return <MachineView />;
  }
  const object = kind === "object" ? kindOf(at.get("kind") ?? "") : undefined;
  if (object && at.get("namespace") && at.get("name")) {
    const [namespace, name] = [at.get("namespace")!, at.get("name")!];
    return <ObjectView key={`${object.kind}/${namespace}/${name}`} kind={object} namespace={namespace} name={name} />;
  }
  if (kind === "record") {
    return <RecordView at={at} />;
  }
  if (kind === "pod" && at.get("name")) {
    const namespace = at.get("namespace") ?? "default";
    const name = at.get("name")!;
    return <PodView key={`${namespace}/${name}`} namespace={namespace} name={name} tab={tab ?? ""} at={at} />;
  }
  return (
    <section class="pad">
      <h1>There is no such page</h1>
      <p>
        <a href="/ui/pods">Look at the pods</a>
      </p>
    </section>
  );
}

/** Connection says that what is shown is from before, until it is not. */
function Connection({ stores }: { stores: Stores }) {
  const [lost, set] = useState(false);
  useEffect(() => stores.onLost(() => set(stores.lost)), [stores]);
  return <div role="status" class={lost ? "lost" : "hidden"}>{lost ? "Not connected; trying again. What you see is from before." : ""}</div>;
}

/** typing reports whether a key is meant for a field, not for the page. */
export function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.matches("input, textarea, select") || target.closest(".terminal") !== null);
}
