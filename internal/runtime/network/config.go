// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
)

// PluginType is the name of the plug-in's binary, as CNI configurations refer to it.
const PluginType = "wherry-cni"

// Config names one pod network. The zero value is not usable; see Derive for how to come by a bridge name and a subnet.
type Config struct {
	// Bridge is the name of the bridge device, at most 15 characters.
	Bridge string
	// CIDRs are the pod subnets: at most one IPv4 and at most one IPv6, at least one of them. The first address of each
	// is the bridge's and the pods' gateway.
	CIDRs []netip.Prefix
	// Former are subnets that the bridge may have had before, by which it is known; nil when none are known.
	Former []netip.Prefix
	// StateDir is the folder of the address leases. It is created when missing and must be on a file system with
	// symbolic links.
	StateDir string
}

// Validate says what is wrong with c in words for the user.
func (c Config) Validate() error {
	switch {
	case c.Bridge == "":
		return errors.New("pod network: no bridge name given")
	case len(c.Bridge) > 15:
		return fmt.Errorf("pod network: bridge name %q is longer than the 15 characters Linux allows", c.Bridge)
	case strings.ContainsAny(c.Bridge, "/ \t\n:") || c.Bridge == "." || c.Bridge == "..":
		return fmt.Errorf("pod network: %q is not a valid network device name", c.Bridge)
	case !filepath.IsAbs(c.StateDir):
		return fmt.Errorf("pod network: state folder %q must be an absolute path", c.StateDir)
	case len(c.CIDRs) == 0:
		return errors.New("pod network: no pod CIDR given")
	}
	var v4, v6 int
	for _, p := range c.CIDRs {
		if !p.IsValid() {
			return errors.New("pod network: a pod CIDR is not valid")
		}
		if p.Addr().Is4In6() {
			return fmt.Errorf("pod CIDR %s: write IPv4 subnets in IPv4 notation", p)
		}
		if p.Masked() != p {
			return fmt.Errorf("pod CIDR %s has host bits set: did you mean %s?", p, p.Masked())
		}
		if p.Addr().BitLen()-p.Bits() < 2 {
			return fmt.Errorf("pod CIDR %s is too small: it must hold at least 4 addresses", p)
		}
		if p.Addr().Is4() {
			v4++
		} else {
			v6++
		}
	}
	if v4 > 1 || v6 > 1 {
		return errors.New("pod network: give at most one IPv4 and one IPv6 pod CIDR")
	}
	return nil
}

// Gateway is the bridge's address in p: the first one after the network address.
func Gateway(p netip.Prefix) netip.Addr { return p.Masked().Addr().Next() }

// Has says whether a CIDR of c contains a.
func (c Config) Has(a netip.Addr) bool {
	for _, p := range c.CIDRs {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// hardwareAddr derives a locally administered Ethernet address from an IP address, so that a neighbour's cache stays
// right when an address is given to another pod.
func hardwareAddr(a netip.Addr) net.HardwareAddr {
	b := a.AsSlice()
	return append(net.HardwareAddr{0x0a, 0x58}, b[len(b)-4:]...)
}

// conf is the plug-in's part of a CNI network configuration.
type conf struct {
	CNIVersion   string          `json:"cniVersion,omitempty"`
	Name         string          `json:"name,omitempty"`
	Type         string          `json:"type"`
	Bridge       string          `json:"bridge"`
	CIDRs        []string        `json:"cidrs"`
	StateDir     string          `json:"stateDir"`
	Capabilities map[string]bool `json:"capabilities,omitempty"`

	RuntimeConfig struct {
		PortMappings []PortMapping `json:"portMappings"`
	} `json:"runtimeConfig,omitzero"`
	ValidAttachments []Attachment `json:"cni.dev/valid-attachments,omitempty"`
}

// ConfList is the file for containerd's CNI conf_dir that makes it call the plug-in. It asks for CNI 1.0.0: from 1.1.0
// on containerd runs the plug-in's STATUS at every Status call of the CRI, a process each time for nothing.
func ConfList(c Config) []byte {
	plugin := conf{
		Type:         PluginType,
		Bridge:       c.Bridge,
		StateDir:     c.StateDir,
		Capabilities: map[string]bool{"portMappings": true},
	}
	for _, p := range c.CIDRs {
		plugin.CIDRs = append(plugin.CIDRs, p.String())
	}
	list := struct {
		CNIVersion string `json:"cniVersion"`
		Name       string `json:"name"`
		Plugins    []conf `json:"plugins"`
	}{"1.0.0", c.Bridge, []conf{plugin}}
	out, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		panic(err) // strings and bools only: cannot happen
	}
	return append(out, '\n')
}

// ParseConfList is the way back from ConfList.
func ParseConfList(text []byte) (Config, error) {
	var list struct {
		Plugins []json.RawMessage `json:"plugins"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return Config{}, fmt.Errorf("network configuration: %w", err)
	}
	if len(list.Plugins) != 1 {
		return Config{}, fmt.Errorf("network configuration: %d plug-ins, want one", len(list.Plugins))
	}
	c, _, err := parseConf(list.Plugins[0])
	return c, err
}

// parseConf reads what the runtime hands to the plug-in on standard input.
func parseConf(stdin []byte) (Config, conf, error) {
	var raw conf
	if err := json.Unmarshal(stdin, &raw); err != nil {
		return Config{}, raw, fmt.Errorf("network configuration: %w", err)
	}
	c := Config{Bridge: raw.Bridge, StateDir: raw.StateDir}
	for i, s := range raw.CIDRs {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return c, raw, fmt.Errorf("network configuration: cidrs[%d]: %w", i, err)
		}
		c.CIDRs = append(c.CIDRs, p)
	}
	return c, raw, c.Validate()
}
