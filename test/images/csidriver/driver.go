// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// volumes is where volumes are kept.
const volumes = "/volumes"

// driver is the service.
type driver struct {
	spec.UnimplementedIdentityServer
	spec.UnimplementedNodeServer
	name, node string
}

// GetPluginInfo is part of the identity service.
func (d *driver) GetPluginInfo(context.Context, *spec.GetPluginInfoRequest) (*spec.GetPluginInfoResponse, error) {
	return &spec.GetPluginInfoResponse{Name: d.name, VendorVersion: "1"}, nil
}

// NodeGetCapabilities is part of the node service.
func (d *driver) NodeGetCapabilities(context.Context,
	*spec.NodeGetCapabilitiesRequest) (*spec.NodeGetCapabilitiesResponse, error) {
	out := &spec.NodeGetCapabilitiesResponse{}
	for _, t := range []spec.NodeServiceCapability_RPC_Type{spec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		spec.NodeServiceCapability_RPC_EXPAND_VOLUME, spec.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		spec.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER} {
		out.Capabilities = append(out.Capabilities, &spec.NodeServiceCapability{
			Type: &spec.NodeServiceCapability_Rpc{Rpc: &spec.NodeServiceCapability_RPC{Type: t}}})
	}
	return out, nil
}

// NodeGetInfo is part of the node service.
func (d *driver) NodeGetInfo(context.Context, *spec.NodeGetInfoRequest) (*spec.NodeGetInfoResponse, error) {
	return &spec.NodeGetInfoResponse{NodeId: "id-of-" + d.node, MaxVolumesPerNode: 7,
		AccessibleTopology: &spec.Topology{Segments: map[string]string{"topology." + d.name + "/rack": "r1"}}}, nil
}

// say prints a line for a call.
func say(what, volume string, more map[string]string) {
	line := what + " " + volume
	for _, key := range slices.Sorted(maps.Keys(more)) {
		if more[key] != "" {
			line += fmt.Sprintf(" %s=%s", key, more[key])
		}
	}
	fmt.Println(line)
}

// place is where a volume is kept, made if it is not there.
func place(volume string, block bool) (string, error) {
	at := filepath.Join(volumes, filepath.Base(volume))
	if !block {
		return at, os.MkdirAll(at, 0o755)
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return at, f.Truncate(1 << 20)
}

// NodeStageVolume is part of the node service.
func (d *driver) NodeStageVolume(_ context.Context,
	r *spec.NodeStageVolumeRequest) (*spec.NodeStageVolumeResponse, error) {
	say("stage", r.GetVolumeId(), map[string]string{"secret": r.GetSecrets()["key"],
		"lun": r.GetPublishContext()["lun"]})
	if r.GetVolumeCapability().GetBlock() != nil {
		return &spec.NodeStageVolumeResponse{}, nil
	}
	at, err := place(r.GetVolumeId(), false)
	if err == nil {
		err = bind(at, r.GetStagingTargetPath())
	}
	return &spec.NodeStageVolumeResponse{}, err
}

// NodeUnstageVolume is part of the node service.
func (d *driver) NodeUnstageVolume(_ context.Context,
	r *spec.NodeUnstageVolumeRequest) (*spec.NodeUnstageVolumeResponse, error) {
	say("unstage", r.GetVolumeId(), nil)
	return &spec.NodeUnstageVolumeResponse{}, unmount(r.GetStagingTargetPath())
}

// NodePublishVolume is part of the node service.
func (d *driver) NodePublishVolume(_ context.Context,
	r *spec.NodePublishVolumeRequest) (*spec.NodePublishVolumeResponse, error) {
	of := r.GetVolumeContext()
	token := "" // that there is one, not which
	if tokens := map[string]struct{ Token string }{}; json.Unmarshal(
		[]byte(of["csi.storage.k8s.io/serviceAccount.tokens"]), &tokens) == nil && tokens["vault"].Token != "" {
		token = "vault"
	}
	inline := of["csi.storage.k8s.io/ephemeral"] == "true"
	id := r.GetVolumeId()
	if inline {
		id = "inline"
	}
	say("publish", id, map[string]string{"secret": r.GetSecrets()["key"], "pod": of["csi.storage.k8s.io/pod.name"],
		"mode": r.GetVolumeCapability().GetAccessMode().GetMode().String(), "token": token,
		"ro": strings.TrimPrefix(strconv.FormatBool(r.GetReadonly()), "false")})
	if of["fail"] != "" {
		return nil, status.Error(codes.Internal, of["fail"])
	}
	if r.GetVolumeCapability().GetBlock() != nil {
		return &spec.NodePublishVolumeResponse{}, publishDevice(r)
	}
	from := r.GetStagingTargetPath()
	var err error
	if inline {
		if from, err = place(r.GetVolumeId(), false); err == nil {
			err = os.WriteFile(filepath.Join(from, "says"), []byte(of["says"]), 0o644)
		}
	}
	if err == nil {
		err = bind(from, r.GetTargetPath())
	}
	if err == nil && r.GetReadonly() {
		err = unix.Mount("", r.GetTargetPath(), "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
	}
	return &spec.NodePublishVolumeResponse{}, err
}

// publishDevice shows a volume as a loop device.
func publishDevice(r *spec.NodePublishVolumeRequest) error {
	at, err := place(r.GetVolumeId(), true)
	if err != nil {
		return err
	}
	device, err := loop(at)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(r.GetTargetPath(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	f.Close()
	return unix.Mount(device, r.GetTargetPath(), "", unix.MS_BIND, "")
}

// loop puts a loop device before a file, until the volume is taken back.
func loop(file string) (string, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer control.Close()
	n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		return "", fmt.Errorf("a free loop device: %w", err)
	}
	device := "/dev/loop" + strconv.Itoa(n)
	d, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer d.Close()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return device, unix.IoctlSetInt(int(d.Fd()), unix.LOOP_SET_FD, int(f.Fd()))
}

// NodeUnpublishVolume is part of the node service.
func (d *driver) NodeUnpublishVolume(_ context.Context,
	r *spec.NodeUnpublishVolumeRequest) (*spec.NodeUnpublishVolumeResponse, error) {
	id := r.GetVolumeId()
	if strings.HasPrefix(id, "csi-") {
		id = "inline"
	}
	say("unpublish", id, nil)
	info, err := os.Stat(r.GetTargetPath())
	if err == nil && info.Mode()&fs.ModeDevice != 0 {
		if d, err := os.OpenFile(r.GetTargetPath(), os.O_RDWR, 0); err == nil {
			_ = unix.IoctlSetInt(int(d.Fd()), unix.LOOP_CLR_FD, 0)
			d.Close()
		}
	}
	return &spec.NodeUnpublishVolumeResponse{}, unmount(r.GetTargetPath())
}

// NodeExpandVolume is part of the node service.
func (d *driver) NodeExpandVolume(_ context.Context,
	r *spec.NodeExpandVolumeRequest) (*spec.NodeExpandVolumeResponse, error) {
	size := r.GetCapacityRange().GetRequiredBytes()
	say("expand", r.GetVolumeId(), map[string]string{"to": strconv.FormatInt(size, 10),
		"secret": r.GetSecrets()["key"]})
	return &spec.NodeExpandVolumeResponse{CapacityBytes: size}, nil
}

// NodeGetVolumeStats is part of the node service.
func (d *driver) NodeGetVolumeStats(context.Context,
	*spec.NodeGetVolumeStatsRequest) (*spec.NodeGetVolumeStatsResponse, error) {
	return &spec.NodeGetVolumeStatsResponse{Usage: []*spec.VolumeUsage{
		{Unit: spec.VolumeUsage_BYTES, Total: 1000, Available: 600, Used: 400},
		{Unit: spec.VolumeUsage_INODES, Total: 10, Available: 7, Used: 3}}}, nil
}

// bind mounts a folder somewhere, once.
func bind(from, at string) error {
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	if err := unmountAll(at); err != nil {
		return err
	}
	return unix.Mount(from, at, "", unix.MS_BIND, "")
}

// unmount takes away what is mounted, and the place.
func unmount(at string) error {
	if err := unmountAll(at); err != nil {
		return err
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func unmountAll(at string) error {
	for {
		err := unix.Unmount(at, 0)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unmounting %s: %w", at, err)
		}
	}
}
