// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/wherryproject/wherry/test/e2e"
)

// Tab is a page in a profile of its own. What is expected of it and does not come fails the test.
type Tab struct {
	T    *testing.T
	Base string // http://127.0.0.1:PORT
	ctx  context.Context

	mu       sync.Mutex
	complain []string         // what the browser has said of the page
	expected []*regexp.Regexp // of which this is to be expected
}

// open signs in by a link of `wherry ui` with these arguments.
func open(t *testing.T, s *e2e.Space, args ...string) *Tab {
	t.Helper()
	link, _ := s.Open(args...)
	tab := newTab(t)
	tab.Go(link)
	tab.Until("be signed in", `document.querySelector(".frame")`)
	return tab
}

// newTab is an empty page.
func newTab(t *testing.T) *Tab {
	t.Helper()
	tab := &Tab{T: t}
	ctx, cancel := chromedp.NewContext(run.browser, chromedp.WithNewBrowserContext(), chromedp.WithListener(tab.hear))
	tab.ctx = ctx
	// What is first done makes the tab, which lives as long as the context that is given then.
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 800)); err != nil {
		t.Fatalf("the browser: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the page:\n%s", tab.Text("body"))
		}
		cancel()
		for _, words := range tab.Complaints() {
			t.Errorf("the browser said: %s", words)
		}
	})
	return tab
}

// networkChanged is what Chromium says of requests that it has cut off because an interface of the machine came or went, as
// those of pods do. The page asks again; so does who has typed an address, also where the page's own files were cut off.
const (
	networkChanged = "ERR_NETWORK_CHANGED"
	cutOff         = `performance.getEntriesByType("resource").some((e) => e.name.includes("/ui/assets/") && e.responseStatus === 0)`
)

// hear notes what the browser says of the page: exceptions, errors on its console, what its policy forbids.
func (tab *Tab) hear(event any) {
	var words string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		words = "exception: " + (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error()
	case *runtime.EventConsoleAPICalled:
		if e.Type != runtime.ConsoleAPICalledTypeError && e.Type != runtime.ConsoleAPICalledTypeWarning && e.Type != runtime.ConsoleAPICalledTypeAssert {
			return
		}
		text, _ := json.Marshal(e.Args)
		words = fmt.Sprintf("console.%s: %s", e.Type, text)
	case *cdplog.EventEntryAdded:
		if e.Entry.Level != cdplog.EntryLevelError && e.Entry.Level != cdplog.EntryLevelWarning {
			return
		}
		words = fmt.Sprintf("%s, %s: %s (%s)", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL)
	default:
		return
	}
	if strings.Contains(words, networkChanged) {
		return
	}
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.complain = append(tab.complain, words)
}

// Expect names what the browser may say.
func (tab *Tab) Expect(pattern string) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.expected = append(tab.expected, regexp.MustCompile(pattern))
}

// Complaints are what the browser has said that was not to be expected.
func (tab *Tab) Complaints() (out []string) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
next:
	for _, words := range tab.complain {
		for _, pattern := range tab.expected {
			if pattern.MatchString(words) {
				continue next
			}
		}
		out = append(out, words)
	}
	return out
}

// Do has the browser do something.
func (tab *Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	tab.T.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, e2e.Timeout)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		tab.T.Fatalf("the browser: %v", err)
	}
}

// Go loads an address: a whole one, or one below the page's own.
func (tab *Tab) Go(address string) {
	tab.T.Helper()
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		tab.Base = u.Scheme + "://" + u.Host
	} else {
		address = tab.Base + address
	}
	for {
		ctx, cancel := context.WithTimeout(tab.ctx, e2e.Timeout)
		err := chromedp.Do(ctx, chromedp.Navigate(address))
		cancel()
		if err == nil {
			if Get[bool](tab, cutOff) {
				continue
			}
			return
		}
		if !strings.Contains(err.Error(), networkChanged) {
			tab.T.Fatalf("%s: %v", address, err)
		}
	}
}

// View loads a view of a pod.
func (tab *Tab) View(view string, s *e2e.Space, pod string, more ...string) {
	tab.T.Helper()
	at := url.Values{"namespace": {s.Namespace}, "name": {pod}}
	for i := 0; i+1 < len(more); i += 2 {
		at.Set(more[i], more[i+1])
	}
	tab.Go("/ui/" + view + "?" + at.Encode())
}

// until is a promise that is kept when an expression is true, looked at after each change of the document.
const until = `new Promise((done) => {
	const watch = new MutationObserver(() => look());
	const end = (is) => { watch.disconnect(); clearTimeout(timer); done(is); };
	const timer = setTimeout(() => end(false), %d);
	const look = () => { if (%s) { end(true); return true; } };
	if (!look()) watch.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
})`

// Until waits until an expression of the page's is true; what says it in words.
func (tab *Tab) Until(what, expression string) {
	tab.T.Helper()
	deadline := time.Now().Add(e2e.Timeout / 2)
	for {
		wait := max(time.Until(deadline), time.Millisecond)
		is, err := chromedp.Run(tab.ctx, chromedp.Evaluate[bool](fmt.Sprintf(until, wait.Milliseconds(), expression),
			chromedp.EvalAwaitPromise))
		if err == nil && is {
			return
		}
		var thrown *chromedp.ExceptionError
		if errors.As(err, &thrown) || time.Now().After(deadline) {
			tab.T.Fatalf("the page does not %s (%s): %v", what, expression, err)
		}
		if err != nil { // the document has gone, with the promise: the next one is asked
			tab.Do(chromedp.WaitReady(chromedp.CSS("body")))
		}
	}
}

// Get is the value of an expression of the page's.
func Get[T any](tab *Tab, expression string) T {
	tab.T.Helper()
	out, err := chromedp.Run(tab.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		tab.T.Fatalf("%s: %v", expression, err)
	}
	return out
}

// Sees waits until the page shows all texts.
func (tab *Tab) Sees(texts ...string) {
	tab.T.Helper()
	for _, text := range texts {
		tab.Until("show "+text, fmt.Sprintf("document.body?.innerText.includes(%q)", text))
	}
}

// SeesNot waits until the page shows a text no more.
func (tab *Tab) SeesNot(text string) {
	tab.T.Helper()
	tab.Until("stop to show "+text, fmt.Sprintf("!document.body.innerText.includes(%q)", text))
}

// Text is what an element shows; "" if there is none, or no page any more.
func (tab *Tab) Text(selector string) string {
	text, _ := chromedp.Run(tab.ctx, chromedp.Evaluate[string](fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector)))
	return text
}

// said is the button or link that says a text; of several the shortest.
const said = `[...document.querySelectorAll("button, a, [role=treeitem]")].filter((e) => e.innerText.includes(%q) && e.offsetParent)
	.sort((a, b) => a.innerText.length - b.innerText.length)[0]`

// Click clicks what a button or link says.
func (tab *Tab) Click(text string) {
	tab.T.Helper()
	tab.ClickOn(fmt.Sprintf(said, text))
}

// ClickOn clicks the middle of an element with the mouse.
func (tab *Tab) ClickOn(element string) {
	tab.T.Helper()
	tab.Until("have what is to be clicked", element)
	at := Get[[]float64](tab, `(() => {
		const element = `+element+`;
		element.scrollIntoView({block: "nearest"});
		const box = element.getBoundingClientRect();
		const at = [box.left + box.width / 2, box.top + box.height / 2];
		return element.contains(document.elementFromPoint(...at)) ? at : [];
	})()`)
	if len(at) != 2 {
		tab.T.Fatalf("%s cannot be clicked: it is covered, or not to be seen", element)
	}
	tab.Do(chromedp.MouseClickXY(at[0], at[1]))
}

// Keys types as a keyboard does: the text of a key is a part of its being pressed, so that a page that takes a key for
// itself is not given its text as well.
func (tab *Tab) Keys(keys string) {
	tab.T.Helper()
	for _, r := range keys {
		events := kb.Encode(r)
		for _, e := range events {
			if e.Type == kb.KeyChar {
				events[0].Text, events[0].UnmodifiedText = e.Text, e.UnmodifiedText
			}
		}
		for _, e := range events {
			if e.Type == kb.KeyChar {
				continue
			}
			if _, err := chromedp.Call(tab.ctx, input.DispatchKeyEvent, *e); err != nil {
				tab.T.Fatalf("the browser: %v", err)
			}
		}
	}
}
