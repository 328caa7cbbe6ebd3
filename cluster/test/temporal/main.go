// Command temporal starts a Temporal server on loopback, for tests and for trying. Its
// data is in memory unless a file is named.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"time"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	schema "go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
)

const host = "127.0.0.1"

func main() {
	port := flag.Int("port", 0, "port to listen on; 0 takes a free one")
	file := flag.String("file", "", "file of the data, which is made if it is missing")
	fairness := flag.Bool("fairness", true, "enable fairness keys (matching.enableFairness)")
	flag.Parse()
	if err := run(*port, *file, *fairness); err != nil {
		fmt.Fprintln(os.Stderr, "temporal:", err)
		os.Exit(1)
	}
}

func run(port int, file string, fairness bool) error {
	data := &config.SQL{PluginName: sqlite.PluginName, ConnectAttributes: map[string]string{"mode": "rwc", "journal_mode": "wal", "synchronous": "off"}, DatabaseName: file}
	if file == "" {
		data.DatabaseName, data.ConnectAttributes = "pawl", map[string]string{"mode": "memory", "cache": "shared"}
	} else if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		if err := schema.SetupSchema(data); err != nil {
			return err
		}
	}
	services, hosts, err := listen(port)
	if err != nil {
		return err
	}
	frontend := hosts[primitives.FrontendService].Self
	c := configure(data, services, frontend)
	namespace, err := schema.NewNamespaceConfig(c.ClusterMetadata.CurrentClusterName, "default", false, nil)
	if err != nil {
		return err
	}
	if err := schema.CreateNamespaces(data, namespace); err != nil {
		return err
	}
	s, err := temporal.NewServer(
		temporal.WithConfig(c),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(hosts),
		temporal.WithLogger(log.NewNoopLogger()),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return authorization.NewNoopClaimMapper() }),
		temporal.WithDynamicConfigClient(dynamicconfig.StaticClient{
			dynamicconfig.MatchingEnableFairness.Key(): fairness,
			// Fairness and priorities hold within a partition.
			dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
			dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,
		}),
	)
	if err != nil {
		return err
	}
	interrupted := temporal.InterruptCh()
	if err := s.Start(); err != nil {
		return err
	}
	fmt.Println(frontend)
	<-interrupted
	return s.Stop()
}

// listen chooses a free port for each service; port is that of the frontend.
func listen(port int) (map[string]config.Service, map[primitives.ServiceName]static.Hosts, error) {
	services, hosts := map[string]config.Service{}, map[primitives.ServiceName]static.Hosts{}
	for _, name := range []primitives.ServiceName{primitives.FrontendService, primitives.HistoryService, primitives.MatchingService, primitives.WorkerService} {
		l, err := listenOn(port)
		if err != nil {
			return nil, nil, err
		}
		defer l.Close() // when all have been chosen, so that no two are the same
		chosen := l.Addr().(*net.TCPAddr).Port
		services[string(name)] = config.Service{RPC: config.RPC{GRPCPort: chosen, BindOnIP: host}}
		hosts[name] = static.SingleLocalHost(l.Addr().String())
		port = 0
	}
	return services, hosts, nil
}

// listenOn listens on a port, or on a free one if it is 0. A free one is below those that the
// system gives to connections and other listeners, which could take it before its service
// listens: the server would wait for that service until its time is up.
func listenOn(port int) (l net.Listener, err error) {
	const lowest, ports = 20_000, 12_000
	for range 100 {
		chosen := cmp.Or(port, lowest+rand.IntN(ports))
		if l, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(chosen))); err == nil || port != 0 {
			break
		}
	}
	return l, err
}

func configure(data *config.SQL, services map[string]config.Service, frontend string) *config.Config {
	const active = "active"
	disabled := config.ArchivalNamespaceDefaults{
		History:    config.HistoryArchivalNamespaceDefaults{State: "disabled"},
		Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
	}
	return &config.Config{
		// The services have twice as long to start, also on a busy machine.
		Global: config.Global{Membership: config.Membership{MaxJoinDuration: time.Minute}},
		Persistence: config.Persistence{
			DefaultStore: sqlite.PluginName, VisibilityStore: sqlite.PluginName, NumHistoryShards: 1,
			DataStores: map[string]config.DataStore{sqlite.PluginName: {SQL: data}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10, MasterClusterName: active, CurrentClusterName: active,
			ClusterInformation: map[string]cluster.ClusterInformation{active: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: frontend}},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services:            services,
		Archival:            config.Archival{History: config.HistoryArchival{State: "disabled"}, Visibility: config.VisibilityArchival{State: "disabled"}},
		PublicClient:        config.PublicClient{HostPort: frontend},
		NamespaceDefaults:   config.NamespaceDefaults{Archival: disabled},
	}
}
