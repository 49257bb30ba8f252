// SPDX-License-Identifier: Apache-2.0

package debugapi_test

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/wherryproject/wherry/internal/cluster/debugapi/rights"
	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// run asks for a session as kubectl would, and returns what it has said.
func run(t *testing.T, config *rest.Config, path string, q url.Values, stdin string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	q.Set("stdout", "true")
	o := remotecommand.StreamOptions{}
	if stdin != "" {
		q.Set("stdin", "true")
		o.Stdin = strings.NewReader(stdin)
	}
	e, err := remotecommand.NewWebSocketExecutor(config, "GET", config.Host+path+"?"+q.Encode())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	o.Stdout = &out
	err = e.StreamWithContext(ctx, o)
	return out.String(), err
}

// A shell goes from a client through the cluster's API server, which has authenticated and authorised him, to the agent
// of the pod's node, and back, with its exit code. Proves DA-05 and DA-04.
func TestShell(t *testing.T) {
	c := newChain(t)
	shop := c.place(t)
	web := c.pod(t, shop, "web", c.node, nil)
	jane, name := c.somebody(t, shop, rights.RoleDebug)
	out, err := run(t, jane, path(shop, "web", wire.Shell), url.Values{}, "ahoy")
	if err != nil || out != "hello from shell\nAHOY" {
		t.Fatalf("got %q, %v", out, err)
	}
	s := c.agent.last(t)
	if s.Pod != (wire.Pod{Namespace: shop, Name: "web", UID: string(web.UID)}) || s.Container != "main" ||
		s.By != name || s.Profile != "general" || !slices.Equal(s.Order, []string{"main"}) || len(s.ID) != 12 ||
		s.Seconds != 3600 || s.Memory != 512<<20 || !s.Stdin || !s.Stdout || s.Writable {
		t.Errorf("the agent was asked for %+v", s)
	}
	_, err = run(t, jane, path(shop, "web", wire.Shell), url.Values{"command": {"7"}}, "")
	if code, ok := errors.AsType[utilexec.CodeExitError](err); !ok || code.Code != 7 {
		t.Errorf("exit code 7: %v", err)
	}
}
