// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PL-30: a pod with huge pages: the node has them, a second pod that wants as many waits for room, a volume is of such
// pages, variables tell how many, and the memory that they take is not allocatable.
func TestHugePages(t *testing.T) {
	const pages = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
	before, err := os.ReadFile(pages)
	if err != nil {
		t.Skipf("this kernel has no huge pages of 2 MiB: %v", err)
	}
	if strings.TrimSpace(string(before)) != "0" {
		t.Skip("somebody else has set huge pages aside")
	}
	if err := os.WriteFile(pages, []byte("4"), 0o600); err != nil {
		t.Skipf("huge pages cannot be set aside: %v", err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(pages, before, 0o600); err != nil {
			t.Error(err)
		}
	})
	if now, err := os.ReadFile(pages); err != nil || strings.TrimSpace(string(now)) != "4" {
		t.Skipf("the kernel has given %s of 4 huge pages", now)
	}
	k := kitOn(t, own(t, ServerOptions{}))
	list, err := k.Client.CoreV1().Nodes().List(k.ctx(), metav1.ListOptions{})
	k.must(err)
	nodes := list.Items
	if got := nodes[0].Status.Capacity["hugepages-2Mi"]; got.String() != "8Mi" {
		t.Errorf("the node has %s of huge pages", got.String())
	}
	whole, free := nodes[0].Status.Capacity.Memory().Value(), nodes[0].Status.Allocatable.Memory().Value()
	if whole-free != 8<<20 {
		t.Errorf("of %d bytes of memory %d are allocatable", whole, free)
	}
	const spec = `
spec:
  containers:
  - name: c
    command: [sh, -c, IDLE]
    env: [{name: MUCH, valueFrom: {resourceFieldRef: {resource: limits.hugepages-2Mi}}}]
    resources: {limits: {hugepages-2Mi: 6Mi, memory: 32Mi, cpu: 500m}}
    volumeMounts: [{name: huge, mountPath: /huge}]
  volumes: [{name: huge, emptyDir: {medium: HugePages, sizeLimit: 4Mi}}]
`
	k.up("metadata: {name: p}" + spec)
	k.says("p", "c", "echo $MUCH", "6291456")
	if got := k.sh("p", "c", "grep ' /huge ' /proc/mounts"); !strings.Contains(got, " hugetlbfs rw") || !strings.Contains(got, "pagesize=2M,size=4194304") {
		t.Errorf("mounted is %q", got)
	}
	k.says("p", "c", "stat -c %a /huge", "1777")
	k.pod("metadata: {name: second}" + spec)
	k.WaitEvent("second", "FailedScheduling", "Insufficient hugepages-2Mi")
	k.Delete("p")
	k.WaitReady("second")
	k.Delete("second")
	k.refused("metadata: {name: more}\nspec: {containers: [{name: c, resources: {limits: {hugepages-2Mi: 4Mi, cpu: 1}, requests: {hugepages-2Mi: 2Mi}}}]}", "must be equal to")
}
