// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"testing"

	"golang.org/x/sys/unix"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// EC-16: what a container prints while no server runs is in its log also when it ends then: the shim keeps its pipes,
// and a server fetches what they hold before it has the shim give them back.
func TestLogOfContainerThatEndedAlone(t *testing.T) {
	dir := dataFolder(t)
	r := start(t, dir)
	importBox(t, r)
	p := runPod(t, r)
	const lines = 100
	id := p.run("counter", []string{"count", "100", "20000", "both"})
	fd, err := unix.PidfdOpen(int(pidOf(t, r, id)), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if n, _ := unix.Poll(poll, 0); n != 0 {
		t.Fatal("the container ended before the runtime was closed")
	}
	if n, err := unix.Poll(poll, 30_000); n != 1 {
		t.Fatal("the container does not end", err)
	}
	r = start(t, dir)
	p.r, p.cri = r, criapi.NewRuntimeServiceClient(r.Conn())
	eventually(t, "the container has ended", func() bool {
		return p.status(id).State == criapi.ContainerState_CONTAINER_EXITED
	})
	log := logOf(t, p, "counter")
	counted(t, "the log", interleave(split(log, 0), split(log, 1)), 1, lines)
	p.stopTaken()
}
