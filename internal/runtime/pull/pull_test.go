// SPDX-License-Identifier: Apache-2.0

package pull

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

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
	k := newKeyed(0)
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

// TestKeyedPatience: who has waited for long enough goes on without the lock, and whoever of all of them is the last gives it back.
func TestKeyedPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeyed(time.Minute)
		began := time.Now()
		for range 3 {
			if err := k.Lock(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}
		if waited := time.Since(began); waited != 2*time.Minute {
			t.Errorf("two waited for %s", waited)
		}
		for range 2 {
			k.Unlock("a")
		}
		over, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := k.Lock(over, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the lock was given though one is left: %v", err)
		}
		k.Unlock("a")
		if len(k.locks) != 0 {
			t.Errorf("%d locks left", len(k.locks))
		}
		if err := k.Lock(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	})
}

// TestPace proves RS-05: a registry that sends nothing, or next to nothing, is given up; one that is slow, or is not asked, is not.
func TestPace(t *testing.T) {
	for name, c := range map[string]struct {
		each    int // bytes that come every half minute
		waiting int32
		after   time.Duration // it is given up; 0: it is not
		why     string
	}{
		"nothing":      {0, 1, 75 * time.Second, "sent nothing for 1m0s"},
		"drops":        {1, 1, 5*time.Minute + 15*time.Second, "sent 10 bytes in 5m15s"},
		"slow":         {7 << 10, 1, 0, ""},
		"nobody waits": {0, 0, 0, ""},
	} {
		w, p := &watch{limit: time.Minute}, pace{}
		w.waiting.Store(c.waiting)
		gaveUp, why := time.Duration(0), ""
		for now := 15 * time.Second; now < time.Hour && why == ""; now += 15 * time.Second {
			if why = w.judge(&p, now); why != "" {
				gaveUp = now
			}
			if now%(30*time.Second) == 0 && c.each > 0 {
				w.bytes.Add(int64(c.each))
				w.last.Store(int64(now))
			}
		}
		if gaveUp != c.after || !strings.HasSuffix(why, c.why) {
			t.Errorf("%s: given up after %s: %q", name, gaveUp, why)
		}
	}
}
