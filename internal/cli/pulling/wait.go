// SPDX-License-Identifier: Apache-2.0

package pulling

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/term"

	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/debug/debugask"
)

// imageExecName is the name that events have for the command of an image exec, which no pod lists.
const imageExecName = "exec"

// Container is the name that events have for the container that a session's query asks for; "" if it needs no image.
func Container(query url.Values) string {
	if query.Get(debugask.ParamExecImage) != "" {
		return imageExecName
	}
	return query.Get(debugask.ParamName)
}

// Wait is a session that has not begun, perhaps because its image is being pulled.
type Wait struct {
	Container string // see the function Container
	Events    func(context.Context) ([]Event, error)
	Node      Ask // nil: nobody can be asked how much has arrived
	// Show is called with what is being done and how far it is, "" if that is not known; and with two empty texts when
	// it is over.
	Show func(what, how string)
}

// Follow shows how far the pull is until ctx ends.
func (w Wait) Follow(ctx context.Context) {
	defer w.Show("", "")
	tick := time.NewTicker(glance)
	defer tick.Stop()
	var all Transfers
	for {
		events, err := w.Events(ctx)
		if err != nil {
			return
		}
		what, how := UnderWay(events, w.Container), ""
		if what != "" && w.Node != nil {
			now, err := w.Node(ctx)
			if err != nil {
				w.Node = nil
			} else {
				all.See(time.Now(), now)
				how = all.String()
			}
		}
		w.Show(what, how)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Events asks a server whose API is at base for the events of a pod.
func Events(client *http.Client, base *url.URL, namespace, pod string) func(context.Context) ([]Event, error) {
	u := base.JoinPath("api/v1/namespaces", namespace, "events")
	u.RawQuery = url.Values{"fieldSelector": {"involvedObject.kind=Pod,involvedObject.name=" + pod}}.Encode()
	return func(ctx context.Context) ([]Event, error) {
		var list struct {
			Items []Event `json:"items"`
		}
		err := fetch(ctx, client, u.String(), &list)
		return list.Items, err
	}
}

// To shows a Wait to whoever reads out: a terminal sees one line that changes and goes away in the end, anything else a
// line when a pull is seen. In raw mode a terminal needs more than a line feed.
func To(out io.Writer, raw bool) func(what, how string) {
	if file, ok := plain.File(out); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return onTerminal(plain.Own(out), width)
		}
	}
	return inLines(out, raw)
}

func onTerminal(out io.Writer, width int) func(what, how string) {
	replace, shown := Replacing(out, width), false
	return func(what, how string) {
		if how != "" {
			what += ": " + how
		}
		if shown || what != "" {
			replace(what)
		}
		shown = what != ""
	}
}

func inLines(out io.Writer, raw bool) func(what, how string) {
	end, last := "\n", ""
	if raw {
		end = "\r\n"
	}
	return func(what, _ string) {
		if what != "" && what != last {
			_, _ = io.WriteString(plain.Own(out), plain.Text(what)+end)
			last = what
		}
	}
}
