// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/wherryproject/wherry/internal/leaktest"
)

func fakeEnv(f *Fake) Env {
	return Env{Client: f.Client(), Image: "test/prog:1", KillPause: f.KillPause}
}

func suiteFake() *Fake {
	return NewFake(Config{Images: map[string]Image{"test/prog:1": {}}, Logs: true})
}

// The fake keeps the contract, called directly, in the bubble's time.
func TestFakeConforms(t *testing.T) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.Test(t, fakeEnv(suiteFake())) })
		})
	}
}

// It does so over gRPC too, in real time.
func TestFakeConformsOverGRPC(t *testing.T) {
	defer leaktest.None(t, goleak.IgnoreCurrent()) // another test's containerd never ends some of its own
	f := suiteFake()
	client, stop, err := f.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	defer func() { _ = client.Close() }()
	Run(t, func(*testing.T) Env {
		e := fakeEnv(f)
		e.Client = client
		return e
	})
}

// A runtime without events keeps it as well: the client polls.
func TestFakeConformsWithoutEvents(t *testing.T) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := suiteFake()
				f.Unsupport("GetContainerEvents")
				e := fakeEnv(f)
				e.NoEvents = true
				c.Test(t, e)
			})
		})
	}
}
