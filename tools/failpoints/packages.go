// SPDX-License-Identifier: Apache-2.0

package main

// module is the module whose sources are rewritten; places in it are named without it.
const module = "github.com/wherryproject/wherry/"

// ours are the packages of the server, of the CNI plug-in and of the shim, as `go list` takes them.
// TestNothingIsLeftOut knows of any that is forgotten.
func ours() []string {
	return []string{
		"./internal/api/...", "./internal/audit/...", "./internal/backup/...", "./internal/controllers/...",
		"./internal/cri", "./internal/deeptree", "./internal/detach", "./internal/filelock/...",
		"./internal/localvolume", "./internal/membership", "./internal/mountfd", "./internal/names/...",
		"./internal/netfilter/...", "./internal/netpolicy/...", "./internal/node/...", "./internal/pki/...",
		"./internal/registry/...", "./internal/runtime/...", "./internal/server/...", "./internal/serviceproxy/...",
		"./internal/shim/...", "./internal/store/...",
	}
}

// embedded are the packages of containerd that make pods: its own steps are places to die at as well.
func embedded() []string {
	const containerd = "github.com/containerd/containerd/v2/"
	return []string{
		containerd + "core/runtime/v2", containerd + "internal/cri/server",
		containerd + "internal/cri/server/podsandbox", containerd + "internal/cri/io", containerd + "pkg/os",
		containerd + "pkg/netns", containerd + "plugins/content/local", containerd + "plugins/snapshots/overlay",
		"github.com/containerd/fifo",
	}
}

// commented are packages that have comments of gofail: etcd's and bbolt's authors wrote down where to die.
func commented() []string {
	return []string{
		"go.etcd.io/etcd/server/v3/etcdserver", "go.etcd.io/etcd/server/v3/storage/backend",
		"go.etcd.io/etcd/server/v3/storage/wal", "go.etcd.io/etcd/server/v3/storage/mvcc",
		"go.etcd.io/etcd/server/v3/storage", "go.etcd.io/bbolt",
	}
}
