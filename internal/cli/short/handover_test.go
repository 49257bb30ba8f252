// SPDX-License-Identifier: Apache-2.0

package short

import (
	"errors"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/cli/session"
)

// What was had is given once, and only to who asks for the same.
func TestTake(t *testing.T) {
	u, other := &url.URL{Scheme: "https", Host: "a"}, &url.URL{Scheme: "https", Host: "b"}
	var none *Outcome
	if _, _, had := none.Take(u); had {
		t.Error("something from nothing")
	}
	o := &Outcome{url: u.String(), code: 7}
	if code, err, had := o.Take(u); !had || code != 7 || err != nil {
		t.Errorf("%d, %v, %v", code, err, had)
	}
	if _, _, had := o.Take(u); had {
		t.Error("given twice")
	}
	o = &Outcome{url: u.String(), code: 7}
	if code, err, had := o.Take(other); !had || err == nil || code != session.ExitFailed {
		t.Errorf("%d, %v, %v", code, err, had)
	}
}

// DC-03: what came of a session is the same to the main program as it was to the short one.
func TestHandOver(t *testing.T) {
	long := strings.Repeat("ä", 1<<20)
	for name, o := range map[string]*Outcome{
		"no session": nil,
		"well":       {url: "https://h/x", code: 0},
		"code":       {url: "https://h/x", code: 42},
		"detached":   {url: "https://h/x", err: session.ErrDetached},
		"lost":       {url: "https://h/x", code: 125, err: errors.New("the connection was lost\nin two lines \x00\"'")},
		"refused": {url: "https://h/x", code: 1, err: &session.Refusal{Raw: []byte(`{"kind":"Status","more":"than we know"}`),
			Status: session.Status{Kind: "Status", Reason: "AlreadyExists", Code: 409, Details: session.Details{Causes: []session.Cause{{Type: "a", Message: "b"}}}}}},
		"long":         {url: "https://h/x", code: 125, err: errors.New(long)},
		"long refusal": {url: "https://h/x", code: 1, err: &session.Refusal{Raw: []byte(long), Status: session.Status{Message: long}}},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := o.encode()
			if err != nil {
				t.Fatal(err)
			}
			if len(text) > maxHandover || strings.Contains(text, "\x00") {
				t.Errorf("%d bytes do not fit into a variable of the environment", len(text))
			}
			t.Setenv(handedOver, text)
			got, err := Received()
			if err != nil {
				t.Fatal(err)
			}
			if _, still := os.LookupEnv(handedOver); still {
				t.Error("what this process starts would take it for theirs")
			}
			if strings.HasPrefix(name, "long") {
				if got.code != o.code || got.url != o.url || !strings.HasPrefix(got.err.Error(), "äää") || len(got.err.Error()) < maxError/2 {
					t.Errorf("%d, %.100s", got.code, got.err)
				}
				return
			}
			if !reflect.DeepEqual(got, o) {
				t.Errorf("%+v, want %+v", got, o)
			}
			if name == "detached" && !errors.Is(got.err, session.ErrDetached) {
				t.Error("not known as detached")
			}
		})
	}
}

func TestReceived(t *testing.T) {
	t.Setenv(handedOver, "") // so that it is restored
	os.Unsetenv(handedOver)
	if o, err := Received(); o != nil || err != nil {
		t.Errorf("%+v, %v", o, err)
	}
	for _, text := range []string{"", "yes", "{", `{"code":"x"}`} {
		t.Setenv(handedOver, text)
		if o, err := Received(); err == nil || o != nil || !strings.Contains(err.Error(), handedOver) {
			t.Errorf("%q: %+v, %v", text, o, err)
		}
	}
}

// The short program alone would begin itself again and again.
func TestHandOverAlone(t *testing.T) {
	w := of(map[string]string{handedOver: "{}"}, "wherry", "debug", "web")
	if err := w.handOver(nil); err == nil || !strings.Contains(err.Error(), "short program alone") {
		t.Errorf("%v", err)
	}
}

// FuzzDecode: whatever the environment holds is refused, or is what the short program could have written.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{"{}", `{"url":"u","code":3}`, `{"url":"u","refused":{"code":4},"raw":"e30="}`, `{"url":"u","detached":true,"error":"x"}`, "[", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := decode(text)
		if err != nil || o == nil {
			return
		}
		again, err := o.encode()
		if err != nil {
			t.Fatal(err)
		}
		if len(again) > maxHandover && len(o.url) < maxHandover/8 {
			t.Errorf("%d bytes", len(again))
		}
	})
}

// DC-03: the main program asks for what the short one has asked for, with the same word.
func TestParam(t *testing.T) {
	var none *Outcome
	o := &Outcome{url: "https://x/exec?ephemeralContainerRequest=mine"}
	if none.Param("ephemeralContainerRequest") != "" || o.Param("ephemeralContainerRequest") != "mine" || o.Param("other") != "" {
		t.Error("not what was asked for")
	}
}
