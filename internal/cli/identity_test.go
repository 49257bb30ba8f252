// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/datadir"
	"github.com/wherryproject/wherry/internal/pki"
	"github.com/wherryproject/wherry/internal/server"
	"github.com/wherryproject/wherry/internal/store"
)

// withAPI runs an API server in the data folder of the test, as a server does, and ends it with the test or by the
// function.
func withAPI(t *testing.T, dir, address string) (stop func()) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "version"), []byte(`{"format":1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	etcd, err := store.Start(ctx, store.Config{Dir: filepath.Join(dir, "etcd")})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := api.New(ctx, api.Config{DataDir: dir, BindAddress: address, EtcdServers: []string{etcd.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(ctx) }()
	<-srv.Ready()
	text, err := srv.AdminKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(datadir.Kubeconfig(dir), text, 0o600); err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := etcd.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func whoIs(t *testing.T, kubeconfig []byte) (string, error) {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	review, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username + " " + strings.Join(review.Status.UserInfo.Groups, ","), nil
}

// Identity: `wherry kubeconfig` makes a kubeconfig that the server takes, for as long as was said, and refuses what
// would be too much.
func TestKubeconfig(t *testing.T) {
	dir := alone(t)
	if code, _, errs := call(t, "", "kubeconfig", "--user", "jane"); code != 1 ||
		!strings.Contains(errs, "there is no certificate authority in") {
		t.Errorf("no data folder: %d, %q", code, errs)
	}
	withAPI(t, dir, "127.0.0.1")
	file := filepath.Join(t.TempDir(), "jane.yaml")
	code, out, errs := call(t, "", "kubeconfig", "--user", "jane", "--group", "dev", "--group", "ops", "--ttl", "2h",
		"-o", file)
	if code != 0 || out != "" || !strings.Contains(errs, "is for user jane and expires at") {
		t.Fatalf("%d, %q, %q", code, out, errs)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if who, err := whoIs(t, text); err != nil || who != "jane dev,ops,system:authenticated" &&
		who != "jane ops,dev,system:authenticated" {
		t.Errorf("the server knows %q, %v", who, err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	certs, err := pki.ParseCertificates(config.CertData)
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(certs[0].NotAfter); left > 2*time.Hour || left < 2*time.Hour-10*time.Minute {
		t.Errorf("good for %v", left)
	}
	if _, err := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("default").List(t.Context(),
		metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("jane has rights nobody gave her: %v", err)
	}
	if os.Geteuid() == 0 {
		t.Setenv("SUDO_UID", "1234")
		t.Setenv("SUDO_GID", "2345")
		code, _, errs = call(t, "", "kubeconfig", "--user", "jane", "-o", file)
		info, err := os.Stat(file)
		if own, ok := info.Sys().(*syscall.Stat_t); code != 0 || err != nil || !ok || own.Uid != 1234 ||
			own.Gid != 2345 || info.Mode().Perm() != 0o600 {
			t.Errorf("by sudo: %d, %q, %v, %+v", code, errs, err, info)
		}
		folder := filepath.Join(t.TempDir(), "new", "folder")
		code, _, errs = call(t, "", "kubeconfig", "--user", "jane", "-o", filepath.Join(folder, "jane.yaml"))
		for at, want := range map[string]uint32{folder: 1234, filepath.Dir(folder): 1234,
			filepath.Dir(filepath.Dir(folder)): 0} {
			info, err := os.Stat(at)
			if err != nil {
				t.Fatalf("%d, %q, %v", code, errs, err)
			}
			if own, ok := info.Sys().(*syscall.Stat_t); !ok || own.Uid != want {
				t.Errorf("by sudo: folder %s is %d's, want %d's", at, own.Uid, want)
			}
		}
	}
	code, out, errs = call(t, "", "kubeconfig", "--user", "root", "--group", "system:masters", "--allow-admin",
		"--server", "https://192.0.2.7:6443")
	if code != 0 || !strings.Contains(out, "https://192.0.2.7:6443") || !strings.Contains(errs, "warning") {
		t.Errorf("%d, %q, %q", code, out, errs)
	}
	for args, want := range map[string]string{
		"kubeconfig": "--user is missing",
		"kubeconfig --user jane --group system:masters": "add --allow-admin",
		"kubeconfig --user system:node:n1":              "add --allow-admin",
		"kubeconfig --user jane --ttl 9000h":            "--ttl 9000h0m0s: use a duration from",
		"kubeconfig --user jane --ttl 10s":              "--ttl 10s",
		"kubeconfig --user jane --group=":               "a group must have a name",
		"kubeconfig --user jane --server x":             "--server",
		"kubeconfig jane":                               "unexpected argument",
	} {
		if code, out, errs := call(t, "", strings.Fields(args)...); code != 2 || out != "" ||
			!strings.Contains(errs, want) {
			t.Errorf("%s: %d, %q, %q", args, code, out, errs)
		}
	}
}

// Identity: `wherry certs` tells what there is and when it ends; rotate replaces it, with and without an end to what
// was before.
func TestCerts(t *testing.T) {
	dir := alone(t)
	for _, args := range []string{"certs", "certs rotate"} {
		if code, _, errs := call(t, "", strings.Fields(args)...); code == 0 || !strings.Contains(errs, dir) {
			t.Errorf("%s without a data folder: %d, %q", args, code, errs)
		}
	}
	stop := withAPI(t, dir, "127.0.0.1")
	lock, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	list := func() map[string]pki.Item {
		t.Helper()
		code, out, errs := call(t, "", "certs", "-o", "json")
		var got certItems
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 {
			t.Fatalf("%d, %q, %q: %v", code, out, errs, err)
		}
		items := map[string]pki.Item{}
		for _, i := range got.Items {
			items[i.Name] = i
		}
		return items
	}
	items := list()
	for name, years := range map[string]float64{"CA": 10, "administrator's kubeconfig": 1, "API server": 1} {
		i, ok := items[name]
		if !ok || i.Ends == nil || time.Until(*i.Ends).Hours() < (years*365-1)*24 || i.Issuer != "wherry-ca" ||
			i.Renewal == "" {
			t.Errorf("%s: %+v", name, i)
		}
	}
	if i := items["key of service account tokens"]; i.Where == "" || i.Ends != nil {
		t.Errorf("%+v", i)
	}
	if code, out, _ := call(t, "", "certs"); code != 0 || !strings.Contains(out, "CN=wherry-ca") ||
		!strings.Contains(out, "never") {
		t.Errorf("%d, %q", code, out)
	}
	if code, out, _ := call(t, "", "certs", "-o", "yaml"); code != 0 ||
		!strings.Contains(out, "subject: CN=wherry-ca") {
		t.Errorf("%d, %q", code, out)
	}
	if code, _, errs := call(t, "", "certs", "rotate"); code != server.ExitFolderLocked ||
		!strings.Contains(errs, "is in use") {
		t.Errorf("with a running server: %d, %q", code, errs)
	}
	before, err := os.ReadFile(datadir.Kubeconfig(dir))
	if err != nil {
		t.Fatal(err)
	}
	stop()
	lock.Close()

	if code, _, errs := call(t, "", "certs", "rotate", "--finish"); code != 0 ||
		!strings.Contains(errs, "nothing to finish") {
		t.Errorf("%d, %q", code, errs)
	}
	if code, out, errs := call(t, "", "certs", "rotate"); code != 0 || out != "" ||
		!strings.Contains(errs, "rotated: start the server") {
		t.Fatalf("%d, %q, %q", code, out, errs)
	}
	if code, _, errs := call(t, "", "certs", "rotate"); code != 1 ||
		!strings.Contains(errs, "the last rotation is not finished") {
		t.Errorf("%d, %q", code, errs)
	}
	items = list()
	for _, name := range []string{"CA", "CA before", "CA, for those who know the one before",
		"former keys of service account tokens"} {
		if _, ok := items[name]; !ok {
			t.Errorf("%s is not listed", name)
		}
	}
	after, err := os.ReadFile(datadir.Kubeconfig(dir))
	if err != nil {
		t.Fatal(err)
	}
	admin, err := clientcmd.RESTConfigFromKubeConfig(after)
	if err != nil {
		t.Fatal(err)
	}
	if cas, err := pki.ParseCertificates(admin.CAData); err != nil || len(cas) != 2 {
		t.Errorf("the kubeconfig trusts %d CAs, %v", len(cas), err)
	}
	if string(before) == string(after) || items["administrator's kubeconfig"].Issuer == "wherry-ca" {
		t.Error("the kubeconfig was not rewritten")
	}
	if code, _, errs := call(t, "", "certs", "rotate", "--finish"); code != 0 || !strings.Contains(errs, "finished") {
		t.Errorf("%d, %q", code, errs)
	}
	if items = list(); len(items) != 4 { // two authorities, a key and the kubeconfig
		t.Errorf("left: %v", items)
	}
}

// Identity: `wherry token` makes, lists and removes the tokens by which agents join; secrets are shown once.
func TestToken(t *testing.T) {
	dir := alone(t)
	withAPI(t, dir, "127.0.0.1")
	code, out, errs := call(t, "", "token", "create", "abcdef.0123456789abcdef", "--ttl", "1h", "--description",
		"rack 4", "--groups", "system:bootstrappers:rack")
	if code != 0 || out != "abcdef.0123456789abcdef\n" {
		t.Fatalf("%d, %q, %q", code, out, errs)
	}
	if code, out, errs = call(t, "", "token", "create", "--ttl", "0"); code != 0 || len(strings.TrimSpace(out)) != 23 {
		t.Fatalf("%d, %q, %q", code, out, errs)
	}
	forever := strings.TrimSpace(out)
	code, out, _ = call(t, "", "token", "list")
	if code != 0 || !strings.Contains(out, "abcdef   59m") ||
		!strings.Contains(out, "system:bootstrappers:rack   rack 4") || !strings.Contains(out, "never") ||
		strings.Contains(out, "0123456789abcdef") || strings.Contains(out, forever[7:]) {
		t.Errorf("%d, %q", code, out)
	}
	if code, out, _ = call(t, "", "token", "list", "-o", "json"); code != 0 ||
		!strings.Contains(out, `"id": "abcdef"`) || strings.Contains(out, "0123456789abcdef") {
		t.Errorf("%d, %q", code, out)
	}
	if code, _, errs = call(t, "", "token", "create", "abcdef.0123456789abcdef"); code != 1 ||
		!strings.Contains(errs, "there is a token with the ID abcdef already") {
		t.Errorf("%d, %q", code, errs)
	}
	if code, _, errs = call(t, "", "token", "create", "--print-join-command"); code != 1 ||
		!strings.Contains(errs, "loopback address only") {
		t.Errorf("%d, %q", code, errs)
	}
	code, out, errs = call(t, "", "token", "create", "--print-join-command", "--server", "https://192.0.2.7:6443")
	_, encoded, _ := strings.Cut(out, "echo ")
	encoded, _, _ = strings.Cut(encoded, " ")
	text, err := base64.StdEncoding.DecodeString(encoded)
	if code != 0 || err != nil || !strings.Contains(out, "wherry agent --bootstrap-kubeconfig wherry-bootstrap.yaml") ||
		!strings.Contains(string(text), "https://192.0.2.7:6443") {
		t.Fatalf("%d, %q, %q", code, out, errs)
	}
	own, err := server.ServerURL(dir)
	if err != nil {
		t.Fatal(err)
	}
	if who, err := whoIs(t, []byte(strings.Replace(string(text), "https://192.0.2.7:6443", own, 1))); err != nil ||
		!strings.HasPrefix(who, "system:bootstrap:") || !strings.Contains(who, "system:bootstrappers") {
		t.Errorf("the join command's kubeconfig: %q, %v", who, err)
	}
	if code, _, errs = call(t, "", "token", "delete", "abcdef", forever); code != 0 ||
		strings.Count(errs, "is removed") != 2 || strings.Contains(errs, forever) {
		t.Errorf("%d, %q", code, errs)
	}
	if code, _, errs = call(t, "", "token", "delete", "abcdef"); code != 1 ||
		!strings.Contains(errs, "there is no token with the ID abcdef") {
		t.Errorf("%d, %q", code, errs)
	}
	for args, want := range map[string]string{
		"token create x":                     "a token is 6 characters",
		"token create --ttl -1h":             "--ttl must not be negative",
		"token create --groups system:nodes": "--groups",
		"token create --server https://x":    "only works with --print-join-command",
		"token delete":                       "TOKEN is missing",
		"token delete X":                     "is not a token ID",
		"token list -o xml":                  "use json or yaml",
		"token lst":                          "did you mean wherry token list?",
		"certs -o xml":                       "use json or yaml",
		"certs rotate x":                     "unexpected argument",
		"server --ui --ui-oidc-client-secret-file /nowhere":                                                      "--ui-oidc-client-secret-file: open /nowhere",
		"server --ui --ui-oidc-client-secret-file /proc/self/comm":                                               "--ui-oidc-client-secret-file needs --oidc-issuer-url",
		"server --oidc-issuer-url https://x --oidc-client-id x --ui-oidc-client-secret-file /proc/self/comm":     "--ui-oidc-client-secret-file needs --ui:",
		"server --oidc-client-id x":                                                                              "--oidc-issuer-url and --oidc-client-id belong together",
		"server --authentication-config /no":                                                                     "--authentication-config",
		"server --cluster-signing-duration 1m":                                                                   "--cluster-signing-duration: 1m0s is too short",
		"server --oidc-issuer-url https://x --oidc-client-id y --ui-oidc-scopes z":                               "--ui-oidc-scopes needs --ui:",
		"server --ui --ui-oidc-scopes profile":                                                                   "--ui-oidc-scopes needs --oidc-issuer-url",
		"server --ui --oidc-issuer-url https://x --oidc-client-id y --ui-oidc-scopes a\\b":                       "--ui-oidc-scopes: \"a\\\\b\" is not a scope",
		"agent --bootstrap-kubeconfig x --rotate-server-certificates --tls-cert-file a --tls-private-key-file b": "exclude one another",
	} {
		if code, out, errs := call(t, "", strings.Fields(args)...); code != 2 || out != "" ||
			!strings.Contains(errs, want) {
			t.Errorf("%s: %d, %q, %q", args, code, out, errs)
		}
	}
}

// Identity: a server that other machines reach names its own address in the join command.
func TestJoinCommandAddress(t *testing.T) {
	dir := alone(t)
	withAPI(t, dir, "0.0.0.0")
	code, out, errs := call(t, "", "token", "create", "--print-join-command")
	if code == 1 && strings.Contains(errs, "loopback") {
		t.Skip("this machine has no address but loopback")
	}
	_, encoded, _ := strings.Cut(out, "echo ")
	encoded, _, _ = strings.Cut(encoded, " ")
	text, err := base64.StdEncoding.DecodeString(encoded)
	if code != 0 || err != nil {
		t.Fatalf("%d, %q, %q", code, out, errs)
	}
	config, err := clientcmd.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ := net.SplitHostPort(strings.TrimPrefix(config.Clusters["wherry"].Server, "https://"))
	if ip := net.ParseIP(host); ip == nil || ip.IsLoopback() {
		t.Errorf("server %s", config.Clusters["wherry"].Server)
	}
	if who, err := whoIs(t, text); err != nil || !strings.HasPrefix(who, "system:bootstrap:") {
		t.Errorf("%q, %v", who, err)
	}
}
