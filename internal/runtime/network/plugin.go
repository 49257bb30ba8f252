// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
)

// Plugin is the CNI face of this package: ADD, DEL, CHECK, GC and STATUS of CNI 1.0 and 1.1. Results go to stdout.
func Plugin(stdout io.Writer) skel.CNIFuncs {
	return skel.CNIFuncs{
		Add:    func(a *skel.CmdArgs) error { return add(a, stdout) },
		Del:    del,
		Check:  check,
		GC:     gc,
		Status: status,
	}
}

func request(a *skel.CmdArgs) (Config, conf, Request, error) {
	c, raw, err := parseConf(a.StdinData)
	if err != nil {
		return c, raw, Request{}, types.NewError(types.ErrInvalidNetworkConfig, err.Error(), "")
	}
	return c, raw, Request{
		Attachment: Attachment{ContainerID: a.ContainerID, IfName: a.IfName},
		Netns:      a.Netns,
		Ports:      raw.RuntimeConfig.PortMappings,
	}, nil
}

func add(a *skel.CmdArgs, stdout io.Writer) error {
	c, raw, r, err := request(a)
	if err != nil {
		return err
	}
	got, err := Add(c, r)
	if err != nil {
		return cniError(err)
	}
	out := current.Result{
		CNIVersion: current.ImplementedSpecVersion,
		Interfaces: []*current.Interface{
			{Name: c.Bridge},
			{Name: got.HostDevice},
			{Name: r.IfName, Mac: got.PodMAC, Mtu: got.MTU, Sandbox: r.Netns},
		},
	}
	for i, p := range got.Addrs {
		out.IPs = append(out.IPs, &current.IPConfig{Interface: current.Int(2), Address: *ipNet(p),
			Gateway: got.Gateways[i].AsSlice()})
		out.Routes = append(out.Routes, &types.Route{Dst: *ipNet(defaultRoute(p)), GW: got.Gateways[i].AsSlice()})
	}
	versioned, err := out.GetAsVersion(raw.CNIVersion)
	if err != nil {
		_ = Del(c, r)
		return types.NewError(types.ErrIncompatibleCNIVersion, err.Error(), "")
	}
	return json.NewEncoder(stdout).Encode(versioned)
}

func del(a *skel.CmdArgs) error {
	c, _, r, err := request(a)
	if err != nil {
		return err
	}
	return cniError(Del(c, r))
}

func check(a *skel.CmdArgs) error {
	c, _, r, err := request(a)
	if err != nil {
		return err
	}
	return cniError(Check(c, r))
}

func gc(a *skel.CmdArgs) error {
	c, raw, _, err := request(a)
	if err != nil {
		return err
	}
	return cniError(GC(c, raw.ValidAttachments))
}

func status(a *skel.CmdArgs) error {
	c, _, _, err := request(a)
	if err != nil {
		return err
	}
	return cniError(Status(c))
}

// Codes of our own begin at 100, as the specification has it.
const (
	codeExhausted uint = 100 + iota
	codePortConflict
)

func cniError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNoBridge):
		return types.NewError(types.ErrPluginNotAvailable, err.Error(), "")
	case errors.Is(err, ErrExhausted):
		return types.NewError(codeExhausted, err.Error(), "")
	case errors.Is(err, ErrPortConflict):
		return types.NewError(codePortConflict, err.Error(), "")
	}
	return types.NewError(types.ErrInternal, err.Error(), "")
}
