// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
)

// A check says ok when its hook has ended well, and not before; a hook that fails because it is stopped is no failure.
func TestHook(t *testing.T) {
	fails := errors.New("no")
	result := fails
	runs, checks := hook(Admission, func(context.Context) error { return result })
	if want := len(standIns()[Admission]); len(checks) != want || want == 0 {
		t.Fatalf("%d checks, want %d", len(checks), want)
	}
	expect := func(when string, ok bool) {
		t.Helper()
		for _, check := range checks {
			if err := check.Check(nil); (err == nil) != ok {
				t.Errorf("%s: %s says %v", when, check.Name(), err)
			}
		}
	}
	expect("before", false)
	if err := runs(genericapiserver.PostStartHookContext{Context: t.Context()}); !errors.Is(err, fails) {
		t.Errorf("it failed with %v", err)
	}
	expect("after a failure", false)
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := runs(genericapiserver.PostStartHookContext{Context: stopped}); err != nil {
		t.Errorf("stopped: %v", err)
	}
	expect("after a stop", false)
	result = nil
	if err := runs(genericapiserver.PostStartHookContext{Context: t.Context()}); err != nil {
		t.Error(err)
	}
	expect("after it", true)
}

// Whether its informers are there is asked of a server at /readyz alone, as of kube-apiserver.
func TestEndpoints(t *testing.T) {
	c := &genericapiserver.Config{PostStartHooks: map[string]genericapiserver.PostStartHookConfigEntry{}}
	AddHook(c, Admission, func(context.Context) error { return nil })
	for path, got := range map[string][]healthz.HealthChecker{"healthz": c.HealthzChecks, "livez": c.LivezChecks, "readyz": c.ReadyzChecks} {
		names := sets.New[string]()
		for _, check := range got {
			names.Insert(check.Name())
		}
		if want := path == "readyz"; names.Has("informer-sync") != want || !names.Has("poststarthook/generic-apiserver-start-informers") {
			t.Errorf("/%s has %v", path, sets.List(names))
		}
	}
}

// Every name stands for one hook, and none is the hook's own.
func TestStandIns(t *testing.T) {
	seen := sets.New(healthz.PingHealthz.Name(), "log", "etcd")
	for hook, names := range standIns() {
		for _, name := range append(names, "poststarthook/"+hook) {
			if seen.Has(name) {
				t.Errorf("two checks are called %s", name)
			}
			seen.Insert(name)
		}
	}
}
