// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/kubeletconfig"
)

// PL-36: every flag that a field of a kubelet's file stands for is one of the agent's, takes the value, and gives way
// to the command line; what the server has no flag for is named.
func TestKubeletConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubelet.yaml")
	text := `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {x509: {clientCAFile: /ca.crt}}
address: 127.0.0.1
allowedUnsafeSysctls: [kernel.msg*]
cgroupDriver: cgroupfs
clusterDNS: [10.1.0.10]
clusterDomain: a.example
containerRuntimeEndpoint: unix:///run/x.sock
containerLogMaxFiles: 3
containerLogMaxSize: 5Mi
enableSystemLogQuery: true
readOnlyPort: 10255
shutdownGracePeriod: 30s
shutdownGracePeriodCriticalPods: 10s
shutdownGracePeriodByPodPriority: [{priority: 1000, shutdownGracePeriodSeconds: 20}, {shutdownGracePeriodSeconds: 5}]
memorySwap: {swapBehavior: LimitedSwap}
imageMaximumGCAge: 24h
evictionHard: {memory.available: 200Mi}
evictionSoft: {memory.available: 300Mi}
evictionSoftGracePeriod: {memory.available: 1m}
evictionMinimumReclaim: {memory.available: 10Mi}
evictionMaxPodGracePeriod: 30
evictionPressureTransitionPeriod: 1m
fileCheckFrequency: 10s
httpCheckFrequency: 10s
imageGCHighThresholdPercent: 80
imageGCLowThresholdPercent: 70
imageMinimumGCAge: 3m
imagePullCredentialsVerificationPolicy: AlwaysVerify
preloadedImagesVerificationAllowlist: [a/b]
logging: {format: json, verbosity: 2}
maxPods: 20
podCIDR: 10.2.0.0/24
podPidsLimit: 100
port: 11250
registerWithTaints: [{key: dedicated, value: gpu, effect: NoSchedule}]
resolvConf: /r
cpuManagerPolicy: static
cpuManagerPolicyOptions: {full-pcpus-only: "true"}
reservedSystemCPUs: "0"
runtimeRequestTimeout: 3m
serverTLSBootstrap: true
staticPodPath: /m
staticPodURL: http://127.0.0.1:1/
staticPodURLHeader: {A: [b]}
tlsCertFile: /c
tlsPrivateKeyFile: /k
tlsCipherSuites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]
tlsMinVersion: VersionTLS12
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want, err := kubeletconfig.Read(file, "")
	if err != nil {
		t.Fatal(err)
	}
	cmd := newAgent(Terminal{})
	if err := cmd.ParseFlags([]string{"--config", file, "--max-pods", "30"}); err != nil {
		t.Fatal(err)
	}
	k := kubeletFiles{file: file}
	if err := k.apply(cmd); err != nil {
		t.Fatal(err)
	}
	if len(k.ignored) > 0 {
		t.Errorf("of a node's file the agent leaves out %q", k.ignored)
	}
	for _, f := range want.Flags {
		if !cmd.Flags().Changed(f.Name) {
			t.Errorf("%s has no effect", f.Field)
		}
	}
	if got := cmd.Flags().Lookup("max-pods").Value.String(); got != "30" {
		t.Errorf("the command line does not override the file: %s", got)
	}
	server := newServer(Terminal{})
	k = kubeletFiles{file: file}
	if err := k.apply(server); err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(k.ignored, "\n"); !strings.Contains(all,
		"tlsCertFile: /c (wherry server has no flag --tls-cert-file)") {
		t.Errorf("the server does not name what it has no flag for: %s", all)
	}
}
