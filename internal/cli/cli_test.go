// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/datadir"
	"github.com/wherryproject/wherry/internal/server"
)

// call runs a command line as Main does.
func call(t *testing.T, stdin string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(Terminal{In: strings.NewReader(stdin), Out: &o, Err: &e}, args)
	return code, o.String(), e.String()
}

// alone gives a test a data folder without a server, and no kubeconfig of the user's.
func alone(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	t.Setenv("WHERRY_DATA_DIR", dir)
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	return dir
}

func manifestFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pod.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: main, image: i}]}\n"

// Every wrong use has a code, one message, and a way out; nothing goes to standard output.
func TestWrongUse(t *testing.T) {
	dir := alone(t)
	good := manifestFile(t, pod)
	bad := manifestFile(t, strings.Replace(pod, "image:", "imagee:", 1))
	cases := []struct {
		args string
		code int
		want string
	}{
		{"rnu", 2, `unknown command "rnu"; did you mean wherry run?`},
		{"image lss", 2, `unknown command "lss"`},
		{"run", 2, "what to run? name a manifest with -f pod.yaml"},
		{"run busybox -f " + good, 2, "exclude each other"},
		{"run busybox echo hi", 2, `unexpected "echo": the command goes after --, as in: wherry run busybox -- echo hi`},
		{"run -- echo hi", 2, "the image is missing: name it before --"},
		{"run " + good, 2, "is a manifest, not an image: wherry run -f " + good},
		{"run -e A=1 -f " + good, 2, "--env needs an image"},
		{"run -d -i busybox", 2, "--detach does not wait for it"},
		{"run -v data:/x busybox", 2, "-v ./data:/x"},
		{"run -f - -f -", 125, "standard input can only be read once"},
		{"run -f x --nope", 2, "unknown flag: --nope\n       see wherry run --help"},
		{"backup", 2, "name a file with -o"},
		{"run -f /no/such", 125, "/no/such: no such file"},
		{"run -f " + bad, 125, bad + ":4: spec.containers[0].imagee: unknown field"},
		{"run -f " + bad + " -f " + bad, 125, "\n       " + bad},
		{"run --rm --detach -f " + good, 2, "choose one"},
		{"run -o table -f " + good, 2, "use json, yaml or name"},
		{"run --timeout -1s -f " + good, 2, "must not be negative"},
		{"run --detach -f " + good, 125, "start one with sudo wherry server --data-dir " + dir + "\n"},
		{"run --kubeconfig /no/such -f " + good, 125, "--kubeconfig is set to /no/such, which does not exist"},
		{"get pods -n x", 2, `unknown command "get"; did you mean wherry kubectl get?`},
		{"apply -f x", 2, "did you mean wherry kubectl apply?"},
		{"logs web", 2, "did you mean wherry kubectl logs?"},
		{"po", 2, `unknown command "po"; did you mean wherry kubectl get pods?`},
		{"tag a b", 2, `unknown command "tag"; did you mean wherry image tag?`},
		{"prune", 2, "did you mean wherry image prune?"},
		{"inspect web", 2, "did you mean wherry image inspect?"},
		{"--verson", 2, "unknown flag: --verson; did you mean --version?"},
		{"ps docker web", 2, `there is no engine "web"`},
		{"nodes", 2, `unknown command "nodes"; did you mean wherry kubectl get nodes?`},
		{"svc", 2, "did you mean wherry kubectl get svc?"},
		{"Deployments", 2, "did you mean wherry kubectl get Deployments?"},
		{"events", 2, "did you mean wherry kubectl events?"},
		{"lgs web", 2, `unknown command "lgs"; did you mean wherry kubectl logs?`},
		{"aply -f x", 2, "did you mean wherry kubectl apply?"},
		{"help nosuch", 2, "unknown command \"nosuch\"\n"},
		{"help rnu", 2, `unknown command "rnu"; did you mean wherry run?`},
		{"help image pul", 2, `unknown command "pul"; did you mean wherry image pull?`},
		{"help ps docker", 2, `unknown command "docker"`},
		{"top pods", 2, "did you mean wherry kubectl top?"},
		{"rn -f x", 2, "did you mean wherry run?"},
		{"image pul x", 2, "did you mean wherry image pull?"},
		{"cluster instal", 2, "did you mean wherry cluster install?"},
		{"cluster manifest --namespace A_b", 2, `namespace "A_b"`},
		{"cluster manifest --values /no/such", 2, "/no/such: no such file"},
		{"cluster install --replicas 0", 2, `api.replicas "0": use 1 to 16`},
		{"cluster install --timeout -1s", 2, "--timeout must be more than 0"},
		{"cluster image", 2, "name a file with -o"},
		{"cluster image -o x --name a@sha256:b", 2, "--name"},
		{"cluster chart", 2, "DIR is missing"},
		{"certs rotat --finish", 2, "did you mean wherry certs rotate?"},
		{"--nope", 2, "unknown flag: --nope\n       see wherry --help"},
		{"server -z", 2, "unknown flag: -z"},
		{"server --bridge x", 2, "unknown flag: --bridge; did you mean --bridge-name?"},
		{"server --data-dir", 2, "--data-dir needs a value"},
		{"server --secure-port web", 2, `--secure-port: "web" is not a whole number`},
		{"run --timeout soon", 2, `--timeout: "soon" is not a duration, for example 90s`},
		{"purge --yes=maybe", 2, `--yes: "maybe" is neither true nor false`},
		{"timeline", 2, "POD is missing: wherry timeline POD\n       see wherry timeline --help"},
		{"timeline web db", 2, `unexpected argument "db": wherry timeline POD`},
		{"why", 2, "POD is missing: wherry why POD\n       see wherry why --help"},
		{"why web db", 2, `unexpected argument "db": wherry why POD`},
		{"why service/web", 2, "service/web: use the name of a pod, or pod/NAME, deployment/NAME"},
		{"why pod/", 2, `"pod/" names no pod`},
		{"why web -o table", 2, "use json or yaml"},
		{"cp web:/x", 2, "DESTINATION is missing: wherry cp SOURCE... DESTINATION"},
		{"debug --profile wide web", 2, `--profile: there is no profile "wide": choose one of general, baseline, restricted, netadmin, sysadmin, legacy`},
		{"debug --ttl -5s web", 2, "--ttl: -5s is not a duration above zero"},
		{"debug stop web", 2, "NAME is missing: wherry debug stop POD NAME..."},
		{"server extra", 2, `unexpected argument "extra": wherry server takes only flags`},
		{"server --bind-address x", 2, "--bind-address"},
		{"server --log-level loud", 2, "use debug, info, warn or error"},
		{"server --log-format xml", 2, "use text or json"},
		{"server --feature-gates A", 2, "A"},
		{"server --feature-gates NoSuchGate=true", 2, "NoSuchGate"},
		{"agent", 2, "--kubeconfig is missing"},
		{"image import", 2, "SOURCE is missing: wherry image import SOURCE..."},
		{"image import /no/such", 1, "/no/such: no such file"},
		{"image ls", 1, "no server is listening on " + filepath.Join(dir, "wherry.sock") + ": start one with sudo wherry server --data-dir " + dir + "\n"},
		{"image ls --data-dir /no/such", 1, "start one with sudo wherry server --data-dir /no/such\n"},
		{"version -o xml", 2, "use json or yaml"},
		{"version extra", 2, "unexpected argument"},
	}
	for _, c := range cases {
		t.Run(c.args, func(t *testing.T) {
			code, out, errs := call(t, "", strings.Fields(c.args)...)
			if code != c.code || !strings.Contains(errs, c.want) || out != "" {
				t.Errorf("exit code %d, want %d; said %q, want %q; wrote %q", code, c.code, errs, c.want, out)
			}
			if strings.Count(errs, "error:") != 1 {
				t.Errorf("not one message: %q", errs)
			}
		})
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("wrong use made the data folder: %v", err)
	}
}

func TestVersion(t *testing.T) {
	if code, out, _ := call(t, "", "--version"); code != 0 || !strings.HasPrefix(out, "wherry ") || strings.Count(out, "\n") != 1 {
		t.Errorf("--version: %d, %q", code, out)
	}
	for output, want := range map[string]string{"": "Kubernetes  ", "json": `"kubernetes": `, "yaml": "kubernetes: "} {
		args := []string{"version"}
		if output != "" {
			args = append(args, "-o", output)
		}
		if code, out, _ := call(t, "", args...); code != 0 || !strings.Contains(out, want) {
			t.Errorf("%v: %d, %q", args, code, out)
		}
	}
}

// Nobody is asked whether to remove what would not be removed; y and yes are a yes.
func TestPurgeAsks(t *testing.T) {
	dir := alone(t)
	if code, _, errs := call(t, "", "purge"); code != 0 || !strings.Contains(errs, "nothing to do") {
		t.Errorf("without a folder: %d, %q", code, errs)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		code, _, errs := call(t, "y\n", "purge")
		if code != server.ExitNotRoot || !strings.Contains(errs, "only root can stop the pods of a data folder and remove it: run it with sudo") {
			t.Errorf("not root: %d, %q", code, errs)
		}
		return
	}
	code, _, errs := call(t, "y\n", "purge")
	if code != server.ExitFolder || !strings.Contains(errs, "is not the data folder of a wherry server") || strings.Contains(errs, "[y/N]") {
		t.Errorf("a folder that is not ours: %d, %q", code, errs)
	}
	if err := os.WriteFile(filepath.Join(dir, "version"), []byte(`{"format":1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, answer := range []string{"", "no\n", "yellow\n"} {
		if code, _, errs := call(t, answer, "purge"); code != 1 || !strings.Contains(errs, "nothing was removed") {
			t.Errorf("answer %q: %d, %q", answer, code, errs)
		}
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("it is gone: %v", err)
	}
	for answer, want := range map[string]bool{"y\n": true, "Y\n": true, "yes": true, "n\n": false} {
		if got := cmdline.Agrees(Terminal{In: strings.NewReader(answer), Err: io.Discard}, dir); got != want {
			t.Errorf("answer %q: %v", answer, got)
		}
	}
}

// Every command helps: one line, and examples unless it only groups others.
func TestEveryCommandHelps(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Hidden { // hidden ones are for the program itself
			return
		}
		if c.Short == "" || c.Example == "" && !c.HasSubCommands() {
			t.Errorf("%s: write Short and Example", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(New(Terminal{}))
	if code, out, _ := call(t, "", "run", "--help"); code != 0 || !strings.Contains(out, "Examples:") {
		t.Errorf("help: %d, %q", code, out)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if code, out, _ := call(t, "", "completion", shell); code != 0 || len(out) < 1000 {
			t.Errorf("completion %s: %d, %d bytes", shell, code, len(out))
		}
	}
}

func TestKubectlFindsTheServer(t *testing.T) {
	dir := alone(t)
	if _, err := chooseKubeconfig(dir, false, []string{"get", "pods"}); err == nil || !strings.Contains(err.Error(), "start one with sudo wherry server --data-dir "+dir) {
		t.Errorf("without a server: %v", err)
	}
	for _, args := range [][]string{{"version", "--client"}, {"--help"}, {"get", "pods", "--kubeconfig", "x"}, {"get", "pods", "--server=https://x"}} {
		if from, err := chooseKubeconfig(dir, false, args); err != nil || os.Getenv("KUBECONFIG") != "" || from.DataDir != "" {
			t.Errorf("%v: %v, KUBECONFIG %q", args, err, os.Getenv("KUBECONFIG"))
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(datadir.Kubeconfig(dir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if from, err := chooseKubeconfig(dir, false, []string{"get", "pods"}); err != nil || os.Getenv("KUBECONFIG") != datadir.Kubeconfig(dir) || from.DataDir != dir {
		t.Errorf("with a server: %v, KUBECONFIG %q", err, os.Getenv("KUBECONFIG"))
	}
	t.Setenv("KUBECONFIG", "/no/such")
	if _, err := chooseKubeconfig(dir, false, []string{"get", "pods"}); err == nil || err.Error() != "KUBECONFIG is set to /no/such, which does not exist" {
		t.Errorf("the user's own, mistyped: %v", err)
	}
	if _, err := chooseKubeconfig(dir, false, []string{"config", "set-cluster", "x"}); err != nil || os.Getenv("KUBECONFIG") != "/no/such" {
		t.Errorf("the user's own, to be made: %v", err)
	}
	if from, err := chooseKubeconfig(dir, true, []string{"get", "pods"}); err != nil || os.Getenv("KUBECONFIG") != datadir.Kubeconfig(dir) || from.DataDir != dir {
		t.Errorf("--data-dir and a KUBECONFIG: %v, KUBECONFIG %q", err, os.Getenv("KUBECONFIG"))
	}
}

// The flag --data-dir says which server is meant, whatever KUBECONFIG says: who works with two servers must not reach the wrong one.
func TestDataDirBeforeKubeconfig(t *testing.T) {
	dir := alone(t)
	other := filepath.Join(t.TempDir(), "other.yaml")
	kubeconfigOf(t, other, "127.0.0.1:1")
	t.Setenv("KUBECONFIG", other)
	for _, args := range []string{"debug ls", "debug web -- ls", "exec web -- ls", "cp web:/x .", "timeline web", "why web", "token list", "run --detach -f " + manifestFile(t, pod)} {
		words := strings.Fields(args)
		_, _, errs := call(t, "", append([]string{words[0], "--data-dir", dir}, words[1:]...)...)
		if !strings.Contains(errs, dir) || strings.Contains(errs, "127.0.0.1:1") {
			t.Errorf("%s: %q, want word of %s", args, errs, dir)
		}
	}
}

// Results that could not be written are told, whichever command has them: what is lost must not look like success.
func TestOutputIsNotLost(t *testing.T) {
	alone(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("no device that is always full: %v", err)
	}
	defer full.Close()
	for _, args := range []string{"version", "version -o json", "help", "completion bash"} {
		var errs bytes.Buffer
		if code := run(Terminal{Out: full, Err: &errs}, strings.Fields(args)); code != 1 || !strings.Contains(errs.String(), "no space left on device") {
			t.Errorf("%s: exit code %d, %q", args, code, errs.String())
		}
	}
}

// The shell completes kubectl's commands and flags behind wherry kubectl.
func TestKubectlCompletes(t *testing.T) {
	alone(t)
	args := os.Args
	defer func() { os.Args = args }()
	if code, out, _ := call(t, "", "__complete", "kubectl", "rollo"); code != 0 || !strings.HasPrefix(out, "rollout\t") {
		t.Errorf("a command: %d, %q", code, out)
	}
	if code, out, _ := call(t, "", "__complete", "kubectl", "config", "view", "--mini"); code != 0 || !strings.Contains(out, "--minify") {
		t.Errorf("a flag: %d, %q", code, out)
	}
}

// --data-dir is wherry's own and kubectl does not see it; what is for a container stays.
func TestKubectlDataDir(t *testing.T) {
	t.Setenv("WHERRY_DATA_DIR", "/usual")
	for typed, want := range map[string]string{
		"get pods":                                "/usual: get pods",
		"--data-dir /x get pods":                  "/x: get pods",
		"get --data-dir=/x pods":                  "/x: get pods",
		"exec web --data-dir /x -- ls":            "/x: exec web -- ls",
		"exec web -- server --data-dir /x":        "/usual: exec web -- server --data-dir /x",
		"run web --image i -- --data-dir=/x -- y": "/usual: run web --image i -- --data-dir=/x -- y",
	} {
		dir, given, rest := cutDataDir(strings.Fields(typed))
		if got := dir + ": " + strings.Join(rest, " "); got != want || given != (dir == "/x") {
			t.Errorf("%q: %q, given %t, want %q", typed, got, given, want)
		}
	}
}

// Every command takes --data-dir, also one that looks for no server: a script gives it to all.
func TestEveryCommandTakesDataDir(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		switch c.CommandPath() {
		case "wherry kubectl": // its flags are not cobra's: TestKubectlDataDir
			return
		}
		if c.Hidden { // it is called by the program itself
			return
		}
		if c.Flag("data-dir") == nil {
			t.Errorf("%s has no --data-dir", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(New(Terminal{}))
	dir := alone(t)
	for _, args := range []string{"version --data-dir " + dir, "--data-dir " + dir + " version", "completion bash --data-dir " + dir} {
		if code, out, errs := call(t, "", strings.Fields(args)...); code != 0 || out == "" || errs != "" {
			t.Errorf("%s: %d, %q", args, code, errs)
		}
	}
	for _, args := range []string{"version --help", "--help", "completion --help"} {
		if _, out, _ := call(t, "", strings.Fields(args)...); strings.Contains(out, "--data-dir") {
			t.Errorf("%s shows a flag that has no effect:\n%s", args, out)
		}
	}
}

// What help says is in our words, whoever wrote the command, and wherry help knows every command.
func TestHelpIsInOurWords(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		words := append([]string{"help"}, strings.Fields(c.CommandPath())[1:]...)
		code, out, errs := call(t, "", words...)
		if code != 0 || errs != "" || !strings.Contains(out, c.CommandPath()) {
			t.Errorf("%v: %d, %q, %q", words, code, out, errs)
		}
		for _, theirs := range []string{
			"autocompletion", "Available Commands", "Additional", "help for ", "version for ", "[command]", "about any command", "for more information",
		} {
			if strings.Contains(out, theirs) {
				t.Errorf("%v: says %q:\n%s", words, theirs, out)
			}
		}
		for _, sub := range c.Commands() {
			if !sub.Hidden && sub.Name() != "kubectl" {
				walk(sub)
			}
		}
	}
	walk(New(Terminal{}))
	for args, want := range map[string]string{"__complete help ima": "image\t", "__complete help image pu": "pull\t", "__complete help run ''": ":4"} {
		if code, out, _ := call(t, "", strings.Fields(args)...); code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: %d, %q", args, code, out)
		}
	}
}

func TestRefusalsKeepTheirCodes(t *testing.T) {
	var b bytes.Buffer
	err := &server.Refusal{Code: server.ExitPortTaken, What: "port 1 is taken", Do: "choose another"}
	if code := codeOf(&b, err); code != server.ExitPortTaken || b.String() != "error: port 1 is taken: choose another\n" {
		t.Errorf("%d, %q", code, b.String())
	}
}
