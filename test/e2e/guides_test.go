// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/wherryproject/wherry/internal/datadir"
	"github.com/wherryproject/wherry/internal/ociimage"
	"github.com/wherryproject/wherry/test/images"
)

//go:embed testdata/guides.txt
var guidesScript string

// someone is who types the guides: nobody, in the machine's terms.
const someone = 65534

// TestGuides types every command of the README and of the guides as it stands there, as a person without rights who has sudo.
// testdata/guides.txt says what must come of each, in the guides' order; a command that is not in it fails the test.
func TestGuides(t *testing.T) {
	t.Parallel()
	desk := newDesk(t)
	for _, page := range parsePages(t, guidesScript) {
		t.Run(page.path, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("../..", page.path))
			if err != nil {
				t.Fatal(err)
			}
			written := commandsOf(string(text))
			for _, s := range page.steps {
				typed := s.run
				if s.kind != ofScript {
					if len(written) == 0 {
						t.Fatalf("guides.txt, line %d: the page has no command left for %q", s.line, s.run)
					}
					if typed = written[0]; firstLine(typed) != s.run {
						t.Fatalf("guides.txt, line %d: the page goes on with %q, the script with %q", s.line, firstLine(typed), s.run)
					}
					written = written[1:]
				}
				if s.kind != notTyped {
					desk.types(t, s, typed)
				}
			}
			for _, left := range written {
				t.Errorf("the script does not know %q", firstLine(left))
			}
		})
	}
	t.Run("no guide is left out", func(t *testing.T) {
		guides, err := filepath.Glob("../../docs/guides/*.md")
		if err != nil || len(guides) == 0 {
			t.Fatalf("%v, %v", guides, err)
		}
		for _, g := range guides {
			if !strings.Contains(guidesScript, "== docs/guides/"+filepath.Base(g)+"\n") {
				t.Errorf("%s is not in testdata/guides.txt", g)
			}
		}
	})
}

// kind says what a step of the script is.
type kind int

const (
	ofScript   kind = iota // of the script, run as root, to set a scene
	works                  // typed, and exits with 0
	atTerminal             // the same, at a terminal
	refuses                // typed, and fails
	notTyped               // in the page, but not for this test; the line after it says why
)

// page is what the script says of one page.
type page struct {
	path  string
	steps []guideStep
}

type guideStep struct {
	step
	kind kind
}

// parsePages reads the script: "== PAGE", then "+ COMMAND" of its own, "> COMMAND", "!> COMMAND" and "= COMMAND" of the page, each with
// what it must print (see step.prints), or for the last why it is not typed.
func parsePages(t *testing.T, script string) (pages []page) {
	t.Helper()
	for i, line := range strings.Split(script, "\n") {
		mark, rest, _ := strings.Cut(line, " ")
		kind, isStep := map[string]kind{"+": ofScript, ">": works, "!>": refuses, "=": notTyped}[mark]
		switch {
		case strings.TrimSpace(line) == "", mark == "#":
		case mark == "==":
			pages = append(pages, page{path: rest})
		case isStep:
			p := &pages[len(pages)-1]
			p.steps = append(p.steps, guideStep{step{line: i + 1, run: rest, fails: kind == refuses}, kind})
		default:
			p := &pages[len(pages)-1]
			last := &p.steps[len(p.steps)-1]
			last.wants = append(last.wants, line)
		}
	}
	for _, p := range pages {
		for _, s := range p.steps {
			if s.kind == notTyped && len(s.wants) == 0 {
				t.Fatalf("guides.txt, line %d: why is %q not typed?", s.line, s.run)
			}
		}
	}
	return pages
}

// typists are the words with which lines of the pages begin that are for typing; what else stands in a block is output, or a file.
func typists() []string {
	return []string{
		"wherry", "bin/wherry", "sudo", "kubectl", "docker", "podman", "helm", "openssl", "make", "tar", "for", "export", "cd", "nft", "curl", "cat", "cp", "mkdir",
		"sha256sum", "echo", "systemctl", "ssh", "scp", "apt", "go", "sh", "git", "ctr", "examples/sidecar-injector/run.sh",
	}
}

// commandsOf are the commands in the blocks of code of a page, whole, without the remarks behind them.
func commandsOf(text string) (all []string) {
	fenced, until := "", "" // the kind of block; what ends a command of several lines
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if mark, ok := strings.CutPrefix(line, "```"); ok {
			if fenced = mark; mark == "" {
				fenced = ""
			}
			continue
		}
		code, indented := strings.CutPrefix(line, "    ")
		if fenced == "sh" {
			code, indented = line, true
		}
		if !indented {
			until = ""
			continue
		}
		code = strings.TrimPrefix(code, "  ") // of a block in a list
		if until != "" {
			last := &all[len(all)-1]
			*last += "\n" + strings.TrimRight(strings.TrimPrefix(line, "    "), " ")
			if until == `\` && !strings.HasSuffix(code, `\`) || code == until {
				until = ""
			}
			continue
		}
		code = strings.TrimPrefix(code, "$ ")
		if word, _, _ := strings.Cut(code, " "); !slices.Contains(typists(), word) {
			continue
		}
		all = append(all, withoutRemark(code))
		if _, end, here := strings.Cut(code, "<<"); here {
			until = strings.Trim(strings.TrimSpace(end), "'")
		} else if strings.HasSuffix(code, `\`) {
			until = `\`
		}
	}
	return all
}

func withoutRemark(code string) string {
	if i := strings.Index(code, " # "); i >= 0 {
		code = code[:i]
	}
	return strings.TrimSpace(code)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// desk is where somebody sits who reads the guides: a folder with the program, a kubectl, a sudo and a docker that has an image.
type desk struct {
	srv     *Server
	dir     string
	env     []string
	exports []string // what was exported in the terminal
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{srv: own(t, ServerOptions{Args: []string{"--write-kubeconfig-group", strconv.Itoa(someone)}})}
	dir, err := os.MkdirTemp("", serverPrefix+"guides")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	d.dir = filepath.Join(dir, "home")
	real, shims := filepath.Join(dir, "real"), filepath.Join(dir, "shims")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{d.dir, real, shims, filepath.Join(d.dir, "bin")} {
		must(os.Mkdir(folder, 0o755))
	}
	must(os.Chmod(dir, 0o755))
	must(os.Chmod(filepath.Dir(d.srv.DataDir), 0o755)) // as /var/lib is
	must(os.Chown(d.dir, someone, someone))
	must(copyProgram(d.srv.World.Wherry, filepath.Join(real, "wherry")))
	must(copyProgram(d.srv.World.Kubectls[0].Path, filepath.Join(real, "kubectl")))
	must(os.Symlink(filepath.Join(shims, "wherry"), filepath.Join(d.dir, "bin/wherry")))
	drop := "exec setpriv --reuid 65534 --regid 65534 --clear-groups "
	programs := map[string]string{
		"wherry":  `[ "$AS_ROOT" ] && exec ` + real + `/wherry "$@"; ` + drop + real + `/wherry "$@"`,
		"kubectl": `[ "$AS_ROOT" ] && exec ` + real + `/kubectl "$@"; ` + drop + real + `/kubectl "$@"`,
		"sudo":    `AS_ROOT=1 HOME=` + dir + ` SUDO_UID=65534 SUDO_GID=65534 exec "$@"`,
		"jq":      `exec cat`, // what a filter makes of it is not the guide's matter
		"docker":  `[ "$1 $2" = "save app:1" ] && exec cat ` + dir + `/app.tar; echo "no docker here" >&2; exit 1`,
	}
	for _, name := range []string{"tar", "sha256sum", "openssl"} { // what they read and write is the person's, as with the above
		path, err := exec.LookPath(name)
		must(err)
		programs[name] = `[ "$AS_ROOT" ] && exec ` + path + ` "$@"; ` + drop + path + ` "$@"`
	}
	for name, script := range programs {
		must(os.WriteFile(filepath.Join(shims, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	d.images(t, dir)
	files, err := filepath.Glob("testdata/guides/*")
	must(err)
	for _, f := range files {
		must(copyProgram(f, filepath.Join(d.dir, filepath.Base(f))))
	}
	must(os.CopyFS(filepath.Join(d.dir, "examples"), os.DirFS("../../examples")))
	d.env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "KUBE") || strings.HasPrefix(e, "WHERRY") })
	d.env = append(d.env, "HOME="+d.dir, "WHERRY_DATA_DIR="+d.srv.DataDir, "PATH="+shims+":"+os.Getenv("PATH"))
	return d
}

// images sees to it that the images are there that the guides speak of; that of app:1 is the one that the docker of this desk has.
func (d *desk) images(t *testing.T, dir string) {
	t.Helper()
	busybox := d.srv.World.Images[images.BusyboxRef]
	if busybox == nil {
		t.Skip(d.srv.World.NoBusy)
	}
	archive(t, filepath.Join(dir, "app.tar"), d.srv.World.Images[images.ToolRef], "docker.io/library/app:1")
	script, err := ociimage.Build(ociimage.Spec{Files: []ociimage.File{
		{Path: "/audit.sh", Mode: 0o755, Data: []byte("#!/bin/sh\necho containers: $(ls /c)\n")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	layers, err := script.Layers()
	if err != nil {
		t.Fatal(err)
	}
	audit, err := mutate.AppendLayers(busybox, layers...)
	if err != nil {
		t.Fatal(err)
	}
	if audit, err = mutate.Config(audit, v1.Config{Cmd: []string{"/audit.sh"}, Env: []string{"PATH=/bin"}}); err != nil {
		t.Fatal(err)
	}
	for i, ref := range []string{"docker.io/library/audit:1", "registry.example.com/audit:1"} {
		path := filepath.Join(dir, fmt.Sprintf("audit-%d.tar", i))
		archive(t, path, audit, ref)
		if out, err := d.srv.Wherry(t.Context(), "image", "import", "--data-dir", d.srv.DataDir, path).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

func archive(t *testing.T, path string, image v1.Image, ref string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := ociimage.WriteTar(f, image, ref); err != nil {
		t.Fatal(err)
	}
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}

// types runs a command and looks at what it says. The data folder of this desk's server is not the usual one.
func (d *desk) types(t *testing.T, s guideStep, command string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Timeout)
	defer cancel()
	command = strings.ReplaceAll(command, datadir.Default, d.srv.DataDir)
	script := strings.Join(append(slices.Clone(d.exports), command), "\n")
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir, cmd.Env, cmd.WaitDelay = d.dir, d.env, 5*time.Second
	if s.kind == ofScript {
		cmd.Env = append(slices.Clone(d.env), "AS_ROOT=1", "HOME="+filepath.Dir(d.dir))
	}
	out, err := cmd.CombinedOutput()
	if (err != nil) != s.fails {
		t.Errorf("guides.txt, line %d: %s\n%v\n%s", s.line, command, err, out)
		return
	}
	if strings.HasPrefix(command, "export ") {
		d.exports = append(d.exports, command)
	}
	for _, want := range s.wants {
		if !s.prints(t, string(out), want) {
			t.Errorf("guides.txt, line %d: %s\nprinted\n%swhich is not %s", s.line, command, out, want)
		}
	}
}
