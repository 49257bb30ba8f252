// SPDX-License-Identifier: Apache-2.0

package kubeletconfig

import (
	"fmt"
	"slices"
	"strings"
)

// asFlag makes a flag of a field's value.
type asFlag func(path string, v any) (Flag, error)

// flagTable has the fields that a flag stands for.
func flagTable() map[string]asFlag {
	return map[string]asFlag{
		"address":                                plain("kubelet-address"),
		"allowedUnsafeSysctls":                   list("allowed-unsafe-sysctls"),
		"authentication.x509.clientCAFile":       plain("client-ca-file"),
		"cgroupDriver":                           plain("cgroup-driver"),
		"clusterDNS":                             list("cluster-dns"),
		"clusterDomain":                          plain("cluster-domain"),
		"containerLogMaxFiles":                   plain("container-log-max-files"),
		"containerLogMaxSize":                    plain("container-log-max-size"),
		"containerRuntimeEndpoint":               plain("container-runtime-endpoint"),
		"cpuManagerPolicy":                       plain("cpu-manager-policy"),
		"cpuManagerPolicyOptions":                pairs("cpu-manager-policy-options", "="),
		"reservedSystemCPUs":                     plain("reserved-cpus"),
		"enableSystemLogQuery":                   plain("enable-system-log-query"),
		"evictionHard":                           pairs("eviction-hard", "<"),
		"evictionMaxPodGracePeriod":              plain("eviction-max-pod-grace-period"),
		"evictionMinimumReclaim":                 pairs("eviction-minimum-reclaim", "="),
		"evictionPressureTransitionPeriod":       plain("eviction-pressure-transition-period"),
		"evictionSoft":                           pairs("eviction-soft", "<"),
		"evictionSoftGracePeriod":                pairs("eviction-soft-grace-period", "="),
		"fileCheckFrequency":                     plain("file-check-frequency"),
		"httpCheckFrequency":                     plain("http-check-frequency"),
		"imageGCHighThresholdPercent":            plain("image-gc-high-threshold"),
		"imageGCLowThresholdPercent":             plain("image-gc-low-threshold"),
		"imageMaximumGCAge":                      plain("maximum-image-ttl-duration"),
		"imageMinimumGCAge":                      plain("minimum-image-ttl-duration"),
		"logging.format":                         plain("log-format"),
		"logging.verbosity":                      plain("v"),
		"memoryManagerPolicy":                    plain("memory-manager-policy"),
		"reservedMemory":                         banks("reserved-memory"),
		"topologyManagerPolicy":                  plain("topology-manager-policy"),
		"topologyManagerScope":                   plain("topology-manager-scope"),
		"topologyManagerPolicyOptions":           pairs("topology-manager-policy-options", "="),
		"maxPods":                                plain("max-pods"),
		"memorySwap.swapBehavior":                plain("swap-behavior"),
		"podCIDR":                                plain("pod-cidr"),
		"podPidsLimit":                           plain("pod-max-pids"),
		"port":                                   plain("kubelet-port"),
		"preloadedImagesVerificationAllowlist":   list("preloaded-images-verification-allowlist"),
		"readOnlyPort":                           plain("read-only-port"),
		"registerWithTaints":                     taints("register-with-taints"),
		"resolvConf":                             plain("resolv-conf"),
		"runtimeRequestTimeout":                  plain("runtime-request-timeout"),
		"serverTLSBootstrap":                     plain("rotate-server-certificates"),
		"shutdownGracePeriod":                    plain("shutdown-grace-period"),
		"shutdownGracePeriodByPodPriority":       priorities("shutdown-grace-period-by-pod-priority"),
		"shutdownGracePeriodCriticalPods":        plain("shutdown-grace-period-critical-pods"),
		"staticPodPath":                          plain("pod-manifest-path"),
		"staticPodURL":                           plain("manifest-url"),
		"staticPodURLHeader":                     headers("manifest-url-header"),
		"tlsCertFile":                            plain("tls-cert-file"),
		"tlsCipherSuites":                        list("tls-cipher-suites"),
		"tlsMinVersion":                          plain("tls-min-version"),
		"tlsPrivateKeyFile":                      plain("tls-private-key-file"),
		"imagePullCredentialsVerificationPolicy": plain("image-pull-credentials-verification-policy"),
	}
}

// plain is a flag that takes the value as it is written.
func plain(name string) asFlag {
	return func(path string, v any) (Flag, error) { return Flag{name, shown(v), path}, nil }
}

// list is a flag that takes values with commas between them.
func list(name string) asFlag {
	return func(path string, v any) (Flag, error) {
		values, err := texts(v)
		return Flag{name, strings.Join(values, ","), path}, err
	}
}

func texts(v any) (out []string, err error) {
	values, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("%s is not a list", shown(v))
	}
	for _, one := range values {
		text := shown(one)
		if strings.Contains(text, ",") {
			return nil, fmt.Errorf("%q: a comma cannot be in a value", text)
		}
		out = append(out, text)
	}
	return out, nil
}

// pairs is a flag that takes names with their values.
func pairs(name, between string) asFlag {
	return func(path string, v any) (Flag, error) {
		values, ok := v.(map[string]any)
		if !ok {
			return Flag{}, fmt.Errorf("%s is not an object", shown(v))
		}
		var out []string
		for k, one := range values {
			out = append(out, k+between+shown(one))
		}
		slices.Sort(out)
		return Flag{name, strings.Join(out, ","), path}, nil
	}
}

// objects is a list of objects.
func objects(v any) (out []map[string]any, err error) {
	items, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("%s is not a list", shown(v))
	}
	for _, one := range items {
		item, ok := one.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s is not an object", shown(one))
		}
		out = append(out, item)
	}
	return out, nil
}

// banks is a flag that takes NODE:NAME=VALUE,... for each item, with semicolons between them.
func banks(name string) asFlag {
	return func(path string, v any) (Flag, error) {
		items, err := objects(v)
		if err != nil {
			return Flag{}, err
		}
		var out []string
		for _, item := range items {
			node := "0"
			if n := item["numaNode"]; n != nil {
				node = shown(n)
			}
			limits, err := pairs(name, "=")(path, item["limits"])
			if err != nil {
				return Flag{}, fmt.Errorf("limits of NUMA node %s: %w", node, err)
			}
			out = append(out, node+":"+limits.Value)
		}
		return Flag{name, strings.Join(out, ";"), path}, nil
	}
}

// headers is a flag that takes NAME:VALUE for each value of each name.
func headers(name string) asFlag {
	return func(path string, v any) (Flag, error) {
		values, ok := v.(map[string]any)
		if !ok {
			return Flag{}, fmt.Errorf("%s is not an object", shown(v))
		}
		var out []string
		for k, of := range values {
			list, err := texts(of)
			if err != nil {
				return Flag{}, err
			}
			for _, one := range list {
				out = append(out, k+":"+one)
			}
		}
		slices.Sort(out)
		return Flag{name, strings.Join(out, ","), path}, nil
	}
}

// priorities is a flag that takes PRIORITY=SECONDS for each item.
func priorities(name string) asFlag {
	return func(path string, v any) (Flag, error) {
		items, err := objects(v)
		if err != nil {
			return Flag{}, err
		}
		var out []string
		for _, item := range items {
			part := func(name string) string {
				if item[name] == nil {
					return "0"
				}
				return shown(item[name])
			}
			out = append(out, part("priority")+"="+part("shutdownGracePeriodSeconds"))
		}
		return Flag{name, strings.Join(out, ","), path}, nil
	}
}

// taints is a flag that takes KEY=VALUE:EFFECT for each item. A kubelet refuses a taint with a time, too: that is the
// API server's to say.
func taints(name string) asFlag {
	return func(path string, v any) (Flag, error) {
		items, err := objects(v)
		if err != nil {
			return Flag{}, err
		}
		var out []string
		for _, item := range items {
			if !empty(item["timeAdded"]) {
				return Flag{}, fmt.Errorf("timeAdded of taint %v: leave it out", item["key"])
			}
			text := ""
			for _, part := range []struct{ before, name string }{{"", "key"}, {"=", "value"}, {":", "effect"}} {
				if !empty(item[part.name]) {
					text += part.before + shown(item[part.name])
				}
			}
			if strings.Contains(text, ",") {
				return Flag{}, fmt.Errorf("%q: a comma cannot be in a taint", text)
			}
			out = append(out, text)
		}
		return Flag{name, strings.Join(out, ","), path}, nil
	}
}
