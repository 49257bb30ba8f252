// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fsnotify/fsnotify"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/wherryproject/wherry/internal/node/devices/devicetest"
	"github.com/wherryproject/wherry/internal/node/kubeletsocket"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: deviceplugin RESOURCE DEVICE...")
		os.Exit(2)
	}
	if err := run(plugin.DevicePluginPath, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func run(folder, resource string, names []string) error {
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM)
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	if err := watcher.Add(folder); err != nil {
		return err
	}
	var devices []*plugin.Device
	for _, name := range names {
		devices = append(devices, devicetest.Device(name, true, -1))
	}
	p := &devicetest.Plugin{Folder: folder, Resource: resource, Options: &plugin.DevicePluginOptions{}, Answer: answer}
	if err := p.Start(devices...); err != nil {
		return err
	}
	fmt.Println("registered")
	for {
		select {
		case <-ends:
			p.Stop()
			return nil
		case e := <-watcher.Events:
			if e.Op.Has(fsnotify.Create) && filepath.Base(e.Name) == kubeletsocket.Name {
				p.Stop()
				if err := p.Start(devices...); err != nil {
					return err
				}
				fmt.Println("registered again")
			}
		case err := <-watcher.Errors:
			return err
		}
	}
}

// answer gives a container all that a plug-in can give.
func answer(ids []string) (*plugin.ContainerAllocateResponse, error) {
	out := &plugin.ContainerAllocateResponse{Envs: map[string]string{"DEVICES": strings.Join(ids, ",")},
		Mounts: []*plugin.Mount{{ContainerPath: "/etc/vendor", HostPath: "/etc/hostname", ReadOnly: true}}}
	for _, id := range ids {
		out.Devices = append(out.Devices,
			&plugin.DeviceSpec{ContainerPath: "/dev/vendor/" + id, HostPath: "/dev/null", Permissions: "rw"})
	}
	return out, nil
}
