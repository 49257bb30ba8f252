// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/ociimage"
	"github.com/wherryproject/wherry/test/images"
)

// TestFaultsKilled: RS-07, PL-03, PL-38, IX-05, EC-11: the server is killed while it pulls an image, takes in another, and has an exec, a debug
// session and an image exec open; a shim dies before it is back. The pull goes on, the other image is whole or absent, the clients are
// told, the debug container and the exec's program go on, the image exec is swept and its record says so.
// ATTACK C1, C4, C6, C29.
func TestFaultsKilled(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	srv := own(t)
	k := kitOn(t, srv)
	reg := srv.Registry(t)
	held := reg.Push(srv, images.ToolRef, "held:1")
	asked, release := reg.Hold()
	k.up("metadata: {name: app}\nspec: {containers: [{name: main, command: [sh, -c, IDLE]}]}")
	shimless := k.up("metadata: {name: shimless}\nspec: {containers: [{name: main, command: [sh, -c, IDLE]}]}")
	shim := parentOf(t, k.pausePID("shimless"))
	k.pod("metadata: {name: pulled}\nspec: {containers: [{name: main, image: '" + held + "', args: [sleep]}]}")
	<-asked

	open := map[string]*Process{
		"exec":       k.command("exec", "app", "--", "sh", "-c", "echo begun; exec sleep 4711").StartProcess(),
		"debug":      k.command("debug", "app", "-m", images.BusyboxRef, "--", "sh", "-c", "echo begun; exec sleep 4712").StartProcess(),
		"image exec": k.command("exec", "app", "-m", images.BusyboxRef, "--", "sh", "-c", "echo begun; exec sleep 4713").StartProcess(),
	}
	for _, p := range open {
		p.Out.Await("begun")
	}
	whole := archiveOf(t, "wherry.test/taken-in:1")
	k.importCutOff(whole, len(whole)/2, func() {
		srv.Kill()
		k.must(syscall.Kill(shim, syscall.SIGKILL))
		awaitDeath(t, shim)
	})
	for name, p := range open {
		if code := p.Wait(); code != 125 && (name != "exec" || code == 0) {
			t.Errorf("%s ended with %d: %s", name, code, p.Err.Text())
		}
		if p.Err.Text() == "" {
			t.Errorf("%s: its client was told nothing", name)
		}
	}
	k.again()
	release()
	if p := k.WaitReady("pulled"); p.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("PL-03 after the pull: %s", summary(p))
	}
	p := k.Wait("shimless", "run again", func(p *corev1.Pod) bool {
		return Status(p, "main").ContainerID != Status(shimless, "main").ContainerID && Condition(p, corev1.PodReady) == corev1.ConditionTrue
	})
	k.Delete("shimless")
	k.WaitGone(p)
	if left := append(k.remains(), k.folders()...); len(left) > 0 {
		t.Errorf("IX-05 left of the image exec: %v", left)
	}
	k.sh("app", "main", "ps -o args | grep 'sleep 471[1]'")
	debugs := k.Get("app").Status.EphemeralContainerStatuses
	if len(debugs) != 1 || debugs[0].State.Running == nil || debugs[0].RestartCount != 0 {
		t.Errorf("EC-11 the debug container is %+v", debugs)
	}
	record := k.Kubectl("get", "debugruns", "-o", "jsonpath={.items[?(@.spec.kind=='ImageExec')].metadata.name}").Out
	k.Kubectl("wait", "debugruns", record, "--for=jsonpath={.status.reason}=Unwatched", "--timeout=60s")

	for _, part := range []int{0, 1} { // all but the last block, all
		k.importCutOff(whole, len(whole)-(1-part)*512, srv.Kill)
		k.again()
		name := fmt.Sprint("whole-", part)
		if !strings.Contains(k.manage("image", "ls"), "wherry.test/taken-in") {
			k.imports(whole)
		}
		k.up("metadata: {name: " + name + "}\nspec: {containers: [{name: main, image: 'wherry.test/taken-in:1', imagePullPolicy: Never, command: [sh, -c, IDLE]}]}")
		if got := k.sh(name, "main", "wc -c </large"); got != fmt.Sprint(large) {
			t.Errorf("C29 the image's file has %s bytes of %d", got, large)
		}
		p := k.Get(name)
		k.Delete(name)
		k.WaitGone(p)
		k.manage("image", "rm", "wherry.test/taken-in:1")
	}
}

const large = 8 << 20

// archiveOf is the archive of an image with busybox and a file that cannot be compressed.
func archiveOf(t *testing.T, ref string) []byte {
	t.Helper()
	data := make([]byte, large)
	_, _ = rand.Read(data)
	more, err := ociimage.Build(ociimage.Spec{Files: []ociimage.File{{Path: "/large", Mode: 0o644, Data: data}}})
	if err != nil {
		t.Fatal(err)
	}
	layers, err := more.Layers()
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(world(t).Images[images.BusyboxRef], layers...)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := ociimage.WriteTar(&b, img, ref); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// importCutOff hands the first part of an archive to `wherry image import -` and does something when it has been read.
func (k *kit) importCutOff(archive []byte, part int, then func()) {
	k.t.Helper()
	cmd := k.Server.Wherry(k.ctx(), "image", "import", "-")
	in, err := cmd.StdinPipe()
	k.must(err)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	k.must(cmd.Start())
	_, err = io.Copy(in, bytes.NewReader(archive[:part]))
	if part == len(archive) {
		k.must(in.Close())
	}
	then()
	_ = in.Close() // it may be closed
	if failed := cmd.Wait(); failed == nil && part < len(archive) {
		k.t.Errorf("the import of a part of an image went well (%v): %s", err, said.String())
	}
}
