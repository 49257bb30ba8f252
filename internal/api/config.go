// SPDX-License-Identifier: Apache-2.0

package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/wherryproject/wherry/internal/api/admission"
	"github.com/wherryproject/wherry/internal/api/authn"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/serviceips"
	"github.com/wherryproject/wherry/internal/audit"
	"github.com/wherryproject/wherry/internal/connlimit"
	"github.com/wherryproject/wherry/internal/features"
	"github.com/wherryproject/wherry/internal/pki"
)

const (
	defaultPrefix      = "/registry"
	defaultServiceCIDR = "10.96.0.0/12"
)

// Config says what a server serves and where. The zero value of a field means its default; EtcdServers and DataDir have
// none.
type Config struct {
	DataDir     string   // certificates, keys and the admin's token live in <DataDir>/pki
	BindAddress string   // address to listen on; default: all of this machine's
	SecurePort  int      // 0: any free port
	ExtraSANs   []string // further names and addresses clients may use for this server

	// Etcd is the client of a store in this process, closed by whoever made it; nil: EtcdServers say where it is.
	Etcd         *clientv3.Client
	EtcdServers  []string // endpoints, such as https://host:2379
	EtcdCAFile   string
	EtcdCertFile string
	EtcdKeyFile  string
	EtcdPrefix   string // default: /registry, as kube-apiserver

	Room registry.Room // of the store, if it is the server's own; nil: nobody but etcd judges whether there is some

	TokenAuthFile string // CSV of token,user,uid,"group,group"; default: none
	NodePorts     string // range of node ports; default: serviceips.DefaultNodePorts
	ServiceCIDR   string // where the addresses of services come from; default: 10.96.0.0/12

	Authentication authn.Options
	// of the certificates the server makes for itself and renews; default: pki.ServingLifetime
	CertLifetime time.Duration

	Admission admission.Options
	// Unenforced says why network policies have no effect, empty if they have; nil: nobody here enforces any.
	Unenforced func() string
	// ClusterDomain and ClusterDNS are what agents of other machines are told of names; without the latter, pods ask
	// service kube-dns.
	ClusterDomain string
	ClusterDNS    []string

	Features *features.Gates   // default: all at their defaults
	Flags    map[string]string // of the command, for /configz
	Audit    *audit.Options    // default: nothing is put on record
	Serving  *Serving          // default: DefaultServing

	Page bool // the page is served too, below /ui/

	Conns *connlimit.Limiter // keeps connections to the port within limits; default: there are none
	Short func() bool        // tells that file descriptors run short; default: never

	Inside *registry.Inside // default: etcd and clients are reached over the network

	Logger *slog.Logger
}

// completed is a Config that has been checked and completed.
type completed struct {
	Config
	Serving        Serving
	Authentication authn.Completed
	services       netip.Prefix
	pki            string
	admission      admission.Completed
}

func (c Config) complete() (*completed, error) {
	s := &completed{Config: c}
	var errs []error
	var err error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.DataDir == "" {
		refuse("data folder: none given")
	}
	s.pki = filepath.Join(c.DataDir, "pki")
	c.checkEtcd(refuse)
	if c.BindAddress != "" && net.ParseIP(c.BindAddress) == nil {
		refuse("bind address %q: not an IP address", c.BindAddress)
	}
	if c.SecurePort < 0 || c.SecurePort > 65535 {
		refuse("secure port %d: not between 0 and 65535", c.SecurePort)
	}
	if completed, err := c.Authentication.Complete(); err != nil {
		errs = append(errs, err)
	} else {
		s.Authentication = completed
	}
	if s.admission, err = c.Admission.Complete(); err != nil {
		refuse("admission configuration: %w", err)
	}
	s.setDefaults()
	errs = append(errs, s.Serving.Validate())
	if s.services, err = netip.ParsePrefix(s.ServiceCIDR); err != nil {
		refuse("service range %q: not a network such as %s", s.ServiceCIDR, defaultServiceCIDR)
	}
	return s, errors.Join(errs...)
}

// checkEtcd refuses what cannot be a way to a store.
func (c *Config) checkEtcd(refuse func(format string, args ...any)) {
	if len(c.EtcdServers) == 0 && c.Etcd == nil && c.Inside == nil {
		refuse("etcd servers: none given")
	}
	if (c.EtcdCertFile == "") != (c.EtcdKeyFile == "") {
		refuse("etcd: a client certificate needs its key, and vice versa")
	}
	for name, file := range map[string]string{"CA": c.EtcdCAFile, "certificate": c.EtcdCertFile, "key": c.EtcdKeyFile} {
		if file == "" {
			continue
		}
		if _, err := os.Stat(file); err != nil {
			refuse("etcd %s file: %w", name, err)
		}
	}
}

func (s *completed) setDefaults() {
	if s.CertLifetime == 0 {
		s.CertLifetime = pki.ServingLifetime
	}
	if s.EtcdPrefix == "" {
		s.EtcdPrefix = defaultPrefix
	}
	if !strings.HasPrefix(s.EtcdPrefix, "/") {
		s.EtcdPrefix = "/" + s.EtcdPrefix
	}
	if s.ServiceCIDR == "" {
		s.ServiceCIDR = defaultServiceCIDR
	}
	if s.NodePorts == "" {
		s.NodePorts = serviceips.DefaultNodePorts
	}
	s.Serving = DefaultServing()
	if s.Config.Serving != nil {
		s.Serving = *s.Config.Serving
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
}

// certNames are the names and addresses clients may know this server by.
func (s *completed) certNames(serviceIP netip.Addr) (names []string, ips []net.IP) {
	names = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local"}
	if host, err := os.Hostname(); err == nil && host != "" {
		names = append(names, strings.ToLower(host))
	}
	ips = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, serviceIP.AsSlice()}
	if ip := net.ParseIP(s.BindAddress); ip != nil && !ip.IsUnspecified() {
		ips = append(ips, ip)
		if at := net.ParseIP(s.advertised(serviceIP.Is6())); at != nil && !at.Equal(ip) {
			ips = append(ips, at)
		}
	} else {
		ips = append(ips, hostIPs()...)
	}
	for _, san := range s.ExtraSANs {
		if ip := net.ParseIP(san); ip != nil {
			ips = append(ips, ip)
		} else if san != "" {
			names = append(names, strings.ToLower(san))
		}
	}
	slices.Sort(names[1:])
	return slices.Compact(names), ips
}

// hostIPs are the addresses of this machine's interfaces that are up, without loopback and link-local ones.
func hostIPs() (ips []net.IP) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
				ips = append(ips, n.IP)
			}
		}
	}
	return ips
}

// host is the address under which the admin's kubeconfig and URL name the server.
func (s *completed) host() string {
	if ip := net.ParseIP(s.BindAddress); ip != nil && !ip.IsUnspecified() {
		return ip.String()
	}
	return "127.0.0.1"
}

// advertised is the address under which pods reach the server, and other machines too unless it listens on loopback;
// empty when there is none. Over IPv6 nothing leads to loopback.
func (s *completed) advertised(want6 bool) string {
	candidates := hostIPs()
	switch ip := net.ParseIP(s.BindAddress); {
	case ip == nil || ip.IsUnspecified() || ip.IsLoopback() && !want6:
	default:
		candidates = []net.IP{ip}
	}
	for _, ip := range candidates {
		if !ip.IsLoopback() && (ip.To4() == nil) == want6 {
			return ip.String()
		}
	}
	return ""
}
