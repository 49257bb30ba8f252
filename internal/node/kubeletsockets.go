// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/csi"
	"github.com/wherryproject/wherry/internal/node/devices"
	"github.com/wherryproject/wherry/internal/node/kubeletsocket"
	"github.com/wherryproject/wherry/internal/node/podresources"
)

// Folders of a kubelet's sockets, below its own.
const (
	devicePluginsFolder = "device-plugins"
	podResourcesFolder  = "pod-resources"
)

// newDevices makes what knows the node's devices.
func (a *Agent) newDevices() (*devices.Manager, error) {
	return devices.New(devices.Config{Folder: filepath.Join(a.cfg.KubeletFolder, devicePluginsFolder),
		PodsFolder: a.cfg.podsFolder(), File: filepath.Join(a.cfg.DataDir, "devices.json"),
		Changed: a.conditionsChanged,
		Retry:   func(uid types.UID) { a.workers.Retry(uid) },
		Health:  func(uid types.UID) { a.workers.Nudge(uid) },
		Logger:  a.log})
}

// serveKubeletSockets serves the sockets of a kubelet until ctx ends. Where another program does, the node goes on
// without device plug-ins.
func (a *Agent) serveKubeletSockets(ctx context.Context, loops *sync.WaitGroup) {
	if a.cfg.KubeletFolder == "" {
		return
	}
	plugins, err := kubeletsocket.Listen(filepath.Join(a.cfg.KubeletFolder, devicePluginsFolder))
	if err != nil {
		a.noSocket("device plug-ins cannot register with this node", err)
		return
	}
	loops.Go(func() { a.devices.Run(ctx, plugins) })
	a.serveCSI(ctx, loops)
	asked, err := kubeletsocket.Listen(filepath.Join(a.cfg.KubeletFolder, podResourcesFolder))
	if err != nil {
		a.noSocket("nobody can ask which pod has which device", err)
		return
	}
	loops.Go(func() {
		if err := podresources.Serve(ctx, asked, deviceHolders{a}); err != nil {
			a.log.Error("nobody can ask any more which pod has which device", "err", err)
		}
	})
}

// RemoveKubeletFolder removes what an agent of the data folder has left in a kubelet's folder: sockets, and what CSI
// drivers had mounted for its pods. It leaves what is others'.
func RemoveKubeletFolder(dataDir, kubeletFolder string) error {
	if err := csi.Purge(podsFolder(dataDir), kubeletFolder); err != nil {
		return err
	}
	for _, name := range []string{csi.RegistryFolder, "plugins/kubernetes.io/csi", "plugins/kubernetes.io", "plugins",
		"pods"} {
		_ = os.Remove(filepath.Join(kubeletFolder, name)) // if it is empty
	}
	for _, name := range []string{devicePluginsFolder, podResourcesFolder} {
		if err := kubeletsocket.Remove(filepath.Join(kubeletFolder, name)); err != nil {
			return err
		}
	}
	err := os.Remove(kubeletFolder)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return err
}

func (a *Agent) noSocket(what string, err error) {
	if errors.Is(err, kubeletsocket.ErrOccupied) {
		a.log.Warn(what, "err", err, "to do",
			"end that program or name another folder with --kubelet-dir, and start again")
		return
	}
	a.log.Warn(what, "err", err)
}

// deviceHolders is what the node's programs may ask about.
type deviceHolders struct{ a *Agent }

// Pods is part of [podresources.Source].
func (d deviceHolders) Pods() (out []*corev1.Pod) {
	for _, v := range host(d).views() {
		if !ended(&v.Pod.Status) {
			out = append(out, v.Pod)
		}
	}
	return out
}

// Held is part of [podresources.Source].
func (d deviceHolders) Held(uid types.UID) map[string][]devices.Share { return d.a.devices.Held(uid) }

// Allocatable is part of [podresources.Source].
func (d deviceHolders) Allocatable() []devices.Share { return d.a.devices.Allocatable() }
