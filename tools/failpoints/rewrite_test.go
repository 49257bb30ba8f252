// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/parser"
	"go/token"
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
