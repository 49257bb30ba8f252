// SPDX-License-Identifier: Apache-2.0

package server

import "testing"

// The node's API listens no farther than it is needed, unless told.
func TestKubeletAddress(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"as the API, on loopback":   {func(*Options) {}, "127.0.0.1"},
		"IPv6":                      {func(o *Options) { o.BindAddress = "::1" }, "::1"},
		"an API for others":         {func(o *Options) { o.BindAddress = "0.0.0.0" }, "192.0.2.7"},
		"an API on one address":     {func(o *Options) { o.BindAddress = "192.0.2.8" }, "192.0.2.7"},
		"an API server elsewhere":   {func(o *Options) { o.Join = "/kubeconfig" }, "192.0.2.7"},
		"told":                      {func(o *Options) { o.KubeletAddress = "192.0.2.9" }, "192.0.2.9"},
		"told, with an API for all": {func(o *Options) { o.BindAddress, o.KubeletAddress = "0.0.0.0", "127.0.0.1" }, "127.0.0.1"},
	} {
		o := Defaults()
		o.NodeName, o.NodeIPs = "n", []string{"192.0.2.7"}
		tc.change(&o)
		got, err := o.complete()
		if err != nil || got.KubeletAddress != tc.want {
			t.Errorf("%s: %s %v, want %s", name, got.KubeletAddress, err, tc.want)
		}
	}
	o := Defaults()
	o.KubeletAddress = "here"
	if _, err := o.complete(); err == nil {
		t.Error("here is no address")
	}
}
