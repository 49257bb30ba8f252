// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const before = `package p // with a word

import ("os"; "google.golang.org/grpc")

func (x *thing) write(name string) error {
	defer os.Remove(name)
	if err := os.Rename(name, name+"x"); err != nil {
		return os.Rename(
			name, name+"y")
	}
	f, err := os.OpenFile(name, os.O_CREATE, 0)
	use(f, err)
	use(os.OpenFile(name, os.O_RDWR, 0))
	conn, _ := grpc.NewClient("x",
		option,
	)
	use(grpc.NewClient("x", options...))
	use(conn, os.Getpid(), x.Flush())
	cmd.Env = []string{"A=b"}
	use(r.Run(ctx, name), r.Flush(ctx))
	return os.WriteFile(name, nil, 0)
}
`

const after = `package p; import wherryfail "github.com/wherryproject/wherry/tools/failpoints/fail" // with a word

import ("os"; "google.golang.org/grpc")

func (x *thing) write(name string) error {
	defer os.Remove(name)
	if err := wherryfail.Do("runtime/network.thing.write:os.Rename", func() error { return os.Rename(name, name+"x") }); err != nil {
		return wherryfail.Do("runtime/network.thing.write:os.Rename#2", func() error { return os.Rename(
			name, name+"y") })
	}
	f, err := wherryfail.Get("runtime/network.thing.write:os.OpenFile", func() (*os.File, error) { return os.OpenFile(name, os.O_CREATE, 0) })
	use(f, err)
	use(os.OpenFile(name, os.O_RDWR, 0))
	conn, _ := grpc.NewClient("x",
		option,
	wherryfail.Calls())
	use(grpc.NewClient("x", options...))
	use(conn, os.Getpid(), wherryfail.Do("runtime/network.thing.write:Flush", func() error { return x.Flush() }))
	cmd.Env = append([]string{"A=b"}, wherryfail.Environment()...)
	use(r.Run(ctx, name), r.Flush(ctx))
	return wherryfail.WriteFile("runtime/network.thing.write:os.WriteFile", os.WriteFile)(name, nil, 0)
}
`

// TestRewrite: what changes something is wrapped, with a name of its own, and nothing else is touched; every line keeps its number.
func TestRewrite(t *testing.T) {
	r := &rewriter{pkg: "runtime/network", calls: calls(), methods: methods(), seen: map[string]int{}}
	got, err := r.file("p.go", []byte(before))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != after {
		t.Errorf("got\n%s", got)
	}
	if _, err := parser.ParseFile(token.NewFileSet(), "p.go", got, 0); err != nil {
		t.Error(err)
	}
	r.pkg = "shim"
	const run = "package p; import wherryfail \"" + failPackage + "\"\n\nfunc f() { use(wherryfail.Get(\"shim.f:Run\", " +
		"func() (int, error) { return r.Run(ctx) }), r.Run()) }\n"
	if got, err = r.file("p.go", []byte("package p\n\nfunc f() { use(r.Run(ctx), r.Run()) }\n")); string(got) != run || err != nil {
		t.Errorf("a call of runc's: %s, %v", got, err)
	}
	r.pkg = "runtime/other"
	if got, err = r.file("p.go", []byte("package p\n\nfunc f() { x.Flush(); os.Getpid() }\n")); got != nil || err != nil {
		t.Errorf("a file without a change of anything: %s, %v", got, err)
	}
}

// TestComments: gofail's comments become calls; those that return errors stay what they are.
func TestComments(t *testing.T) {
	got := string(comments("etcd/x", []byte("package x\n\nfunc f() {\n\t// gofail: var beforeSave struct{}\n\t// gofail: var bad string\n}\n")))
	want := "package x; import wherryfail \"" + failPackage + "\"\n\nfunc f() {\n\twherryfail.Here(\"etcd/x.beforeSave\")\n\t// gofail: var bad string\n}\n"
	if got != want {
		t.Errorf("got\n%s", got)
	}
	if comments("etcd/x", []byte("package x\n\n// gofail: var beforeBucketPut struct{}\n")) != nil {
		t.Error("a file without writes is rewritten")
	}
}

// TestNothingIsLeftOut: every package of the server, the CNI plug-in and the shim that changes something has failpoints. One that is to
// have none stands here, with the reason.
func TestNothingIsLeftOut(t *testing.T) {
	without := map[string]string{
		"capture":    "a command's, not the server's",
		"hostdebug/": "of debug sessions on other engines, which the server does not have",
		"cli":        "commands",
		"cluster/":   "the agent in clusters of Kubernetes' own programs",
	}
	t.Chdir("../..")
	have := map[string]bool{}
	if err := each(ours(), func(p listed) error { have[p.ImportPath] = true; return nil }); err != nil {
		t.Fatal(err)
	}
	for name := range without {
		if slices.ContainsFunc(slices.Collect(maps.Keys(have)), func(path string) bool { return under(path, name) }) {
			t.Errorf("%s has failpoints, and is said to have none", name)
		}
	}
	looked := 0
	err := each([]string{"-deps", "./internal/server/...", "./cmd/wherry-cni", "./cmd/wherry-shim", "./cmd/wherry"}, func(p listed) error {
		if !p.Module.Main || have[p.ImportPath] {
			return nil
		}
		if slices.ContainsFunc(slices.Collect(maps.Keys(without)), func(name string) bool { return under(p.ImportPath, name) }) {
			return nil
		}
		looked++
		r := &rewriter{pkg: p.name(), calls: calls(), methods: methods(), seen: map[string]int{}}
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				return err
			}
			if out, err := r.file(name, text); err != nil || out != nil {
				t.Errorf("%s changes something and has no failpoints: add the package to ours (%v)", filepath.Join(p.ImportPath, name), err)
			}
		}
		return nil
	})
	if err != nil || looked == 0 {
		t.Errorf("%d packages, %v", looked, err)
	}
}

func under(path, name string) bool {
	return strings.HasPrefix(path+"/", module+"internal/"+strings.TrimSuffix(name, "/")+"/")
}

// TestNames: places are named shortly, and no two packages have one name.
func TestNames(t *testing.T) {
	for path, want := range map[string]string{
		module + "internal/node/volume":                           "node/volume",
		"github.com/containerd/containerd/v2/internal/cri/server": "containerd/internal/cri/server",
		"go.etcd.io/etcd/server/v3/storage/wal":                   "etcd/server/v3/storage/wal",
		"go.etcd.io/bbolt":                                        "bbolt",
		module + "cmd/wherry-cni":                                 "cmd/wherry-cni",
	} {
		if got := (listed{ImportPath: path}).name(); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
