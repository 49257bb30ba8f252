// SPDX-License-Identifier: Apache-2.0

package pull

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"

	"github.com/containerd/errdefs"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestLogin proves PL-03: what of the CRI's credentials a registry is shown.
func TestLogin(t *testing.T) {
	for _, c := range []struct {
		auth         *criapi.AuthConfig
		user, secret string
		fails        bool
	}{
		{},
		{auth: &criapi.AuthConfig{Username: "ann", Password: "p", IdentityToken: "t"}, user: "ann", secret: "p"},
		{auth: &criapi.AuthConfig{IdentityToken: "t"}, secret: "t"},
		{auth: &criapi.AuthConfig{Auth: "YW5uOnA6cQ=="}, user: "ann", secret: "p:q"},
		{auth: &criapi.AuthConfig{Auth: "YW5u"}, fails: true},
		{auth: &criapi.AuthConfig{Auth: "!"}, fails: true},
		{auth: &criapi.AuthConfig{Username: "ann", ServerAddress: "https://r.test"}, user: "ann"},
		{auth: &criapi.AuthConfig{Username: "ann", ServerAddress: "https://other.test"}},
		{auth: &criapi.AuthConfig{Username: "ann", ServerAddress: "https://%"}, fails: true},
	} {
		user, secret, err := login(c.auth, "r.test")
		if user != c.user || secret != c.secret || (err != nil) != c.fails {
			t.Errorf("%v: %q, %q, %v", c.auth, user, secret, err)
		}
	}
}

// TestUseless proves RS-02: what is of no use to the next pull takes no room.
func TestUseless(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want bool
	}{
		{t.Context(), errors.New("connection reset by peer"), false},
		{t.Context(), context.Canceled, false}, // the registry sent nothing
		{over, context.Canceled, true},
		{t.Context(), fmt.Errorf("write: %w", syscall.ENOSPC), true},
		{t.Context(), fmt.Errorf("unexpected commit digest: %w", errdefs.ErrFailedPrecondition), true},
	} {
		if got := useless(c.ctx, c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}

// TestKeyed: one has a lock at a time, who does not want it any more does not get it, and none is left.
func TestKeyed(t *testing.T) {
	k := newKeyed()
	if err := k.Lock(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := k.Lock(t.Context(), "b"); err != nil {
		t.Fatal("another name's is another lock")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.Lock(over, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("a lock that was held was given: %v", err)
	}
	n, all := 0, sync.WaitGroup{}
	for range 50 {
		all.Go(func() {
			if err := k.Lock(t.Context(), "a"); err != nil {
				t.Error(err)
			}
			n++
			k.Unlock("a")
		})
	}
	k.Unlock("a")
	k.Unlock("b")
	all.Wait()
	if n != 50 || len(k.locks) != 0 {
		t.Errorf("%d of 50, %d locks left", n, len(k.locks))
	}
}
