// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/ociimage"
	"github.com/wherryproject/wherry/test/images"
)

// TestFaultsAround: RS-05, RS-07, PL-10: the server stands still for a while; a pod's network namespace, an image's blob and a file of what
// it was unpacked to are taken away. What ended meanwhile is seen, pods without their namespace can be entered and deleted, an image runs
// from what was unpacked, and one whose files are gone fails in words and is mended by removing and importing it.
// ATTACK C21, C22, C23, C31.
func TestFaultsAround(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	srv := own(t)
	k := kitOn(t, srv)
	app := k.up("metadata: {name: app}\nspec: {containers: [{name: main, command: [sh, -c, IDLE]}, {name: other, command: [sh, -c, IDLE]}]}")
	t.Run("C31 stands still", func(t *testing.T) {
		k := &kit{k.With(t), t}
		main := k.hostPID("app", "main")
		watch, err := k.Client.CoreV1().Pods(k.Namespace).Watch(k.ctx(), metav1.ListOptions{FieldSelector: "metadata.name=app"})
		k.must(err)
		defer watch.Stop()
		k.must(syscall.Kill(srv.PID(), syscall.SIGSTOP))
		defer func() { _ = syscall.Kill(srv.PID(), syscall.SIGCONT) }() // if the test ends early
		asked := make(chan error, 1)
		go func() {
			_, err := k.Client.CoreV1().Pods(k.Namespace).Get(k.ctx(), "app", metav1.GetOptions{})
			asked <- err
		}()
		k.must(syscall.Kill(main, syscall.SIGKILL))
		awaitDeath(t, main)
		k.must(syscall.Kill(srv.PID(), syscall.SIGCONT))
		k.must(<-asked)
		p := k.WaitRestarts("app", "main", 1)
		if end := Ended(p, "main"); end == nil || end.ExitCode != 137 || Status(p, "other").ContainerID != Status(app, "other").ContainerID {
			t.Errorf("it is %s", summary(p))
		}
		for e := range watch.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok && Status(p, "main") != nil && Status(p, "main").RestartCount == 1 {
				return // the watch from before goes on
			}
		}
		t.Error("the watch from before has ended")
	})
	t.Run("C21 network namespace", func(t *testing.T) {
		k := &kit{k.With(t), t}
		path := k.netns("app")
		k.must(errors.Join(unix.Unmount(path, unix.MNT_DETACH), os.Remove(path)))
		k.says("app", "other", "echo here", "here")
		p := k.Get("app")
		k.Delete("app")
		k.WaitGone(p)
	})
	t.Run("C22 blob", func(t *testing.T) {
		k := &kit{k.With(t), t}
		blobs := k.blobs()
		file := k.ownImage("wherry.test/blob:1", "in the blob")
		damaged := 0
		for _, b := range k.blobs() {
			if info, err := os.Stat(b); err == nil && !strings.Contains(strings.Join(blobs, " "), b) && info.Size() > 4096 {
				k.must(os.WriteFile(b, bytes.Repeat([]byte("x"), int(info.Size())), 0o600))
				damaged++
			}
		}
		if damaged == 0 {
			t.Fatal("no blob to damage")
		}
		k.up("metadata: {name: blob}\nspec: {containers: [{name: main, image: 'wherry.test/blob:1', imagePullPolicy: Never, command: [/bin/sh, -c, IDLE]}]}")
		k.says("blob", "main", "cat "+file, "in the blob")
	})
	t.Run("C23 unpacked file", func(t *testing.T) {
		k := &kit{k.With(t), t}
		file := k.ownImage("wherry.test/files:1", "in the snapshot")
		found, err := filepath.Glob(filepath.Join(k.DataDir, "runtime/root/io.containerd.snapshotter.v1.*/snapshots/*/fs", file))
		k.must(err)
		for _, f := range found {
			if text, err := os.ReadFile(f); err == nil && string(text) == "in the snapshot" {
				k.must(os.Remove(filepath.Join(filepath.Dir(f), "bin/sh")))
			}
		}
		const pod = "metadata: {name: NAME}\nspec: {restartPolicy: Never, containers: [{name: main, image: 'wherry.test/files:1', imagePullPolicy: Never, command: [/bin/sh, -c, IDLE]}]}"
		k.pod(strings.Replace(pod, "NAME", "broken", 1))
		p := k.WaitPhase("broken", corev1.PodFailed)
		if end := Ended(p, "main"); end == nil || end.Reason != "StartError" || !strings.Contains(end.Message, "/bin/sh") || !strings.Contains(end.Message, "no such file") {
			t.Errorf("it is %s", summary(p))
		}
		k.Delete("broken")
		k.must(k.awaitGone(k.ctx(), "pods", k.Namespace, "broken"))
		k.AwaitNoTrace(p)
		k.manage("image", "rm", "--force", "wherry.test/files:1")
		k.ownImage("wherry.test/files:1", "in the snapshot")
		k.up(strings.Replace(pod, "NAME", "mended", 1))
		k.says("mended", "main", "cat "+file, "in the snapshot")
	})
}

// netns is where the network namespace of a pod's sandbox is mounted.
func (k *kit) netns(pod string) string {
	k.t.Helper()
	client, err := k.CRI(k.ctx())
	k.must(err)
	defer client.Close()
	s, err := client.Runtime.PodSandboxStatus(k.ctx(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: k.box(client, k.Get(pod)).Id, Verbose: true})
	k.must(err)
	m := regexp.MustCompile(`"type":\s*"network",\s*"path":\s*"([^"]+)"`).FindStringSubmatch(s.Info["info"])
	if m == nil {
		k.t.Fatalf("the sandbox has no network namespace: %s", s.Info["info"])
	}
	return m[1]
}

// blobs are the files in which the runtime keeps images as they came.
func (k *kit) blobs() []string {
	k.t.Helper()
	all, err := filepath.Glob(filepath.Join(k.DataDir, "runtime/root/io.containerd.content.v1.content/blobs/sha256/*"))
	k.must(err)
	return all
}

// ownImage imports an image that shares no layer with others: a shell, and a file with the text, whose name it returns.
func (k *kit) ownImage(ref, text string) string {
	k.t.Helper()
	busybox, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/bin/busybox", k.hostPID(k.shellPod(), "main")))
	k.must(err)
	const file = "/own"
	files := []ociimage.File{{Path: "/bin/sh", Data: busybox}, {Path: file, Mode: 0o644, Data: []byte(text)}}
	for _, name := range []string{"cat", "sleep"} {
		files = append(files, ociimage.File{Path: "/bin/" + name, Mode: os.ModeSymlink | 0o777, Data: []byte("sh")})
	}
	img, err := ociimage.Build(ociimage.Spec{Files: files, Env: []string{"PATH=/bin"}, Labels: map[string]string{"of": ref}})
	k.must(err)
	var b bytes.Buffer
	k.must(ociimage.WriteTar(&b, img, ref))
	k.imports(b.Bytes())
	return file
}

// shellPod is a running pod of the busybox image.
func (k *kit) shellPod() string {
	k.t.Helper()
	const name = "shell"
	if _, err := k.Client.CoreV1().Pods(k.Namespace).Get(k.ctx(), name, metav1.GetOptions{}); err != nil {
		k.up("metadata: {name: shell}\nspec: {containers: [{name: main, image: '" + images.BusyboxRef + "', command: [sh, -c, IDLE]}]}")
	}
	return name
}

// TestReadOnlyDisk: RS-07: the file system of the data folder finds an error and becomes read-only: the server ends with the reason, says at
// its next start what is wrong, and once the file system is repaired has everything that it acknowledged.
// ATTACK C17.
func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	world(t)
	dir, home := t.TempDir(), t.TempDir()
	image := filepath.Join(home, "disk")
	trigger := mountExt4(t, image, dir)
	srv := &Server{World: world(t), base: home, DataDir: filepath.Join(dir, "x", "d"), home: home, log: filepath.Join(home, "log"), opts: ServerOptions{NoImages: true}}
	srv.Kubeconfig = filepath.Join(srv.DataDir, "kubeconfig")
	if err := os.Mkdir(filepath.Dir(srv.DataDir), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if err := srv.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the server's log:\n%s", srv.LogTail(60))
		}
		if err := srv.Purge(context.Background()); err != nil {
			t.Error(err)
		}
	})
	maps := srv.Client.CoreV1().ConfigMaps("default")
	var stored []string
	write := func() error {
		m, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "m-"}, Data: map[string]string{"a": strings.Repeat("x", 1000)}}, metav1.CreateOptions{})
		if err == nil {
			stored = append(stored, m.Name)
		}
		return err
	}
	for range 71 {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(trigger, []byte("1"), 0o200); err != nil {
		t.Fatal(err)
	}
	for write() == nil { // what is acknowledged now still counts
	}
	<-srv.Done()
	var exit *exec.ExitError
	if text := srv.LogTail(1); !errors.As(srv.err, &exit) || !strings.Contains(text, "read-only") || !strings.Contains(text, srv.DataDir) {
		t.Errorf("it ended with %v: %s", srv.err, text)
	}
	if words, code := refusesToStart(t, srv); code != 15 || !strings.Contains(words, "read-only") {
		t.Errorf("exit code %d: %s", code, words)
	}
	if err := unmountAll(dir); err != nil {
		t.Fatal(err)
	}
	released(t, image)
	if out, err := exec.Command("e2fsck", "-fy", image).CombinedOutput(); err != nil && !strings.Contains(err.Error(), "status 1") { // 1: it was repaired
		t.Fatalf("e2fsck: %v: %s", err, out)
	}
	mountExt4(t, image, dir)
	if err := srv.Start(ctx); err != nil {
		t.Fatal(err)
	}
	maps = srv.Client.CoreV1().ConfigMaps("default")
	for _, name := range stored {
		if _, err := maps.Get(ctx, name, metav1.GetOptions{}); err != nil {
			t.Errorf("%s was acknowledged: %v", name, err)
		}
	}
}

// released waits until no loop device has the image. A mount namespace that another test's container has just made keeps a mount that
// is gone from this one for a moment; mounting the image meanwhile would give the file system as it was, read-only.
func released(t *testing.T, image string) {
	t.Helper()
	for deadline := time.Now().Add(Timeout); ; time.Sleep(20 * time.Millisecond) {
		used := ""
		files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if text, err := os.ReadFile(f); err == nil && strings.TrimSpace(string(text)) == image {
				used = f
			}
		}
		if used == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is still in use: %s", image, used)
		}
	}
}

// mountExt4 mounts an image, which it makes if it is not there, and returns the file that makes the kernel find an error in it.
func mountExt4(t *testing.T, image, dir string) string {
	t.Helper()
	run := func(name string, args ...string) {
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Skipf("no ext4 on a loop device here: %s: %v: %s", name, err, out)
		}
	}
	if !exists(image) {
		t.Cleanup(func() { _ = unmountAll(dir) }) // it may be unmounted
		run("truncate", "-s", "1200M", image)
		run("mkfs.ext4", "-q", "-F", image)
	}
	run("mount", "-o", "loop,errors=remount-ro", image, dir)
	var s unix.Stat_t
	if err := unix.Stat(dir, &s); err != nil {
		t.Fatal(err)
	}
	device, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(s.Dev), unix.Minor(s.Dev)))
	if err != nil {
		t.Skip("no loop device here: ", err)
	}
	trigger := filepath.Join("/sys/fs/ext4", filepath.Base(device), "trigger_fs_error")
	if !exists(trigger) {
		t.Skip("the kernel cannot be told to find an error: there is no ", trigger)
	}
	return trigger
}

// imports takes an image in.
func (k *kit) imports(archive []byte) {
	k.t.Helper()
	cmd := k.Server.Wherry(k.ctx(), "image", "import", "-")
	cmd.Stdin = bytes.NewReader(archive)
	if out, err := cmd.CombinedOutput(); err != nil {
		k.t.Fatalf("image import: %v: %s", err, out)
	}
}
