// SPDX-License-Identifier: Apache-2.0

package onhost

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/ocispec"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

// A container that Docker has in containerd is listed once; those that have ended when they are asked for.
func TestRows(t *testing.T) {
	of := func(e target.Engine, id string, s engines.State) *engines.Container {
		return &engines.Container{Target: target.Target{Engine: e, Name: id}, ID: id, State: s}
	}
	all := []*engines.Container{of(target.Docker, "a", engines.Running), of(target.Docker, "b", engines.Exited),
		of(target.Containerd, "a", engines.Running), of(target.Containerd, "c", engines.Paused)}
	names := func(rows []row) string {
		var out []string
		for _, r := range rows {
			out = append(out, r.Target)
		}
		return strings.Join(out, " ")
	}
	if got := names(rows(all, false)); got != "docker:a containerd:c" {
		t.Errorf("running: %s", got)
	}
	if got := names(rows(all, true)); got != "docker:a docker:b containerd:c" {
		t.Errorf("all: %s", got)
	}
}

// DA-13: Tab completes pods and the words that targets begin with, and after such a word the engine's containers.
func TestComplete(t *testing.T) {
	pods := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"docs"}, cobra.ShellCompDirectiveNoFileComp
	}
	complete := (&Flags{Address: "/none"}).Complete(pods)
	for typed, want := range map[string]string{"": "docs", "do": "docs docker:", "p": "docs podman: pid:",
		"docker:": "", "nosuch:": ""} {
		if got, _ := complete(&cobra.Command{}, nil, typed); strings.Join(got, " ") != want {
			t.Errorf("%q: %q", typed, got)
		}
	}
	if got, _ := complete(&cobra.Command{}, []string{"web"}, ""); got != nil {
		t.Errorf("a second one: %q", got)
	}
	list := []*engines.Container{{Target: target.Target{Engine: target.Docker, Name: "web"}, State: engines.Running,
		Image: "app:1"},
		{Target: target.Target{Engine: target.Docker, Name: "db"}, State: engines.Exited}}
	if got := strings.Join(named(list, "docker:w"), "|"); got != "docker:web\trunning app:1" {
		t.Errorf("%q", got)
	}
}

// Limits that cannot be meant are refused with the flag's name.
func TestLimits(t *testing.T) {
	for _, f := range []Flags{{memory: "x"}, {memory: "1Ki"}, {memory: "-1Gi"}, {cpus: -1}, {cpus: 0.001}} {
		var w ocispec.Options
		if err := f.limits(&w); err == nil || !strings.HasPrefix(err.Error(), "--") {
			t.Errorf("%+v: %v", f, err)
		}
	}
	var w ocispec.Options
	if err := (&Flags{memory: "64Mi", cpus: 0.5}).limits(&w); err != nil || w.Memory != 64<<20 || w.CPUs != 0.5 {
		t.Errorf("%+v, %v", w, err)
	}
}
