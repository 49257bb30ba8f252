// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/cli/service"
)

// What the server would refuse, and what a service cannot have, is refused before anything is written.
func TestServiceWrongUse(t *testing.T) {
	alone(t)
	t.Chdir(t.TempDir())
	if err := os.WriteFile("agent.yaml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"service instal --name x":                            "did you mean wherry service install?",
		"service install everything":                         `unexpected argument "everything": name server or agent, and its flags after --`,
		"service install server agent":                       `unexpected argument "agent"`,
		"service install --name ../x":                        `--name: "../x" is not a name for a service`,
		"service remove --name a/b":                          `--name: "a/b" is not a name for a service`,
		"service install -- --nope":                          "after --: unknown flag: --nope\n       see wherry server --help",
		"service install -- now":                             `after --: unexpected argument "now"`,
		"service install -- --data-dir /x":                   "--data-dir goes before the --",
		"service install agent -- --token-auth-file x":       "unknown flag: --token-auth-file\n       see wherry agent --help",
		"service install agent -- --kubeconfig agent.yaml":   "--kubeconfig agent.yaml: the service runs in another folder, so use the absolute path: /",
		"service install agent -- --kubeconfig ./agent.yaml": "use the absolute path: /",
	} {
		if code, out, errs := call(t, "", strings.Fields(args)...); code != 2 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: %d, %q, %q", args, code, out, errs)
		}
	}
}

// The service starts this program with the flags given, and says what it has done and how to end it.
func TestServiceInstall(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can install a service")
	}
	if _, err := ownProgram(); err != nil {
		t.Skipf("the tests' own program is in a folder that is open to others: %v", err)
	}
	dir := alone(t)
	var ran []string
	host := service.Host{Root: t.TempDir(), Has: func(string) bool { return false }, Run: func(_ context.Context, command ...string) error {
		ran = append(ran, strings.Join(command, " "))
		return nil
	}}
	var said bytes.Buffer
	f := &serviceFlags{name: "w", dataDir: dir}
	if err := f.install(t.Context(), Terminal{Err: &said}, host, "server", []string{"--secure-port", "7443"}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(host.Root, "etc/init.d/w")
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), " server --data-dir "+dir+" --secure-port 7443 >>") {
		t.Errorf("%v: %s", err, text)
	}
	if len(ran) != 1 || ran[0] != file+" restart" || !strings.Contains(said.String(), "wrote "+file+" and started the service w\n") ||
		!strings.Contains(said.String(), "have "+file+" start run at boot") {
		t.Errorf("ran %q, said %s", ran, said.String())
	}
	said.Reset()
	if err := f.remove(t.Context(), Terminal{Err: &said}, host); err != nil || !strings.Contains(said.String(), "to remove everything: sudo wherry purge --data-dir "+dir) {
		t.Errorf("%v, said %s", err, said.String())
	}
	said.Reset()
	if err := f.remove(t.Context(), Terminal{Err: &said}, host); err != nil || !strings.Contains(said.String(), "nothing to do") {
		t.Errorf("%v, said %s", err, said.String())
	}
}
