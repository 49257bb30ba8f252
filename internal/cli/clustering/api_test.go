// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cluster/debugapi"
)

// The namespace is the flag's, else the environment's, else the pod's; outside of a pod it must be given.
func TestAPINamespace(t *testing.T) {
	pod := func(string) ([]byte, error) { return []byte("from-pod\n"), nil }
	none := func(string) ([]byte, error) { return nil, fs.ErrNotExist }
	set := func(string) string { return "from-env" }
	unset := func(string) string { return "" }
	for _, c := range []struct {
		flag string
		env  func(string) string
		file func(string) ([]byte, error)
		want string
	}{{"from-flag", set, pod, "from-flag"}, {"", set, pod, "from-env"}, {"", unset, pod, "from-pod"},
		{"", unset, none, ""}} {
		a := &apiCommand{Config: debugapi.Defaults(), memory: "2Gi"}
		a.Namespace = c.flag
		err := a.complete(c.env, c.file)
		if a.Namespace != c.want || (err == nil) != (c.want != "") || a.Limits.Memory != 2<<30 {
			t.Errorf("%+v: got %q, %v", c, a.Namespace, err)
		}
	}
	a := &apiCommand{memory: "much"}
	if err := a.complete(set, pod); err == nil || !strings.Contains(err.Error(), "--max-memory") {
		t.Errorf("got %v", err)
	}
}

// What is wrong with the flags is told at once, with the exit code for it.
func TestAPIRefusesFlags(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "wherry-debug")
	nothing := filepath.Join(t.TempDir(), "none")
	for want, args := range map[string][]string{
		"--kubeconfig is missing": {}, "--kubeconfig: ": {"--kubeconfig", nothing},
		"--max-memory": {"--max-memory=lots", "--kubeconfig", nothing},
	} {
		var out bytes.Buffer
		cmd := NewAPI(cmdline.Terminal{Out: &out, Err: &out})
		cmd.SetArgs(args)
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		err := cmd.ExecuteContext(t.Context())
		exit, ok := errors.AsType[*cmdline.Exit](err)
		if err == nil || !strings.Contains(err.Error(), want) || !ok || exit.Code != cmdline.ExitUsage {
			t.Errorf("%v: got %v", args, err)
		}
	}
}
