"""The guest's shots of the devices: nodeworth's topology against ibv_devinfo, rdma and ip. Used by compare.py."""
import ipaddress
import json
import re

failures = []


def expect(what, found, wanted):
    if found != wanted:
        failures.append(f"{what}: {found!r}, not {wanted!r}")


def ports_of_tools(folder):
    """{"rxe0/1": {…}} in the tools' own words, made comparable."""
    ports = {}
    for block in re.split(r"(?m)^hca_id:\s*", (folder / "ibv_devinfo").read_text())[1:]:
        device = block.split()[0]
        field = dict(re.findall(r"(?m)^\s*(\w+):\s+(\S.*?)\s*$", block))
        speed, width = field["active_speed"].split()[0], field["active_width"].split("X")[0]
        ports[device + "/1"] = {
            "node_guid": field["node_guid"],
            "system_guid": field["sys_image_guid"],
            "state": field["state"].split()[0].removeprefix("PORT_").lower(),
            "physical_state": field["phys_state"].split()[0].replace("_", " ").lower(),
            "link_layer": field["link_layer"].lower(),
            "mtu_bytes": float(field["active_mtu"].split()[0]),
            "max_mtu_bytes": float(field["max_mtu"].split()[0]),
            "rate": float(speed) * int(width) * 1e9,
            "gids": {
                int(index): (ipaddress.IPv6Address(gid), kind.lower())
                for index, gid, kind in re.findall(r"GID\[\s*(\d+)\]:\s+(\S+), (RoCE v\d)", block)
            },
        }
    for device, netdev in re.findall(r"link (\S+) .*netdev (\S+)", (folder / "rdma-link").read_text()):
        ports[device]["interface"] = netdev
        addresses = re.findall(rf"(?m)^\d+: {netdev}\s+inet6? (\S+)", (folder / "addresses").read_text())
        ports[device]["ip_addresses"] = sorted(addresses)
    return ports


def ports_of_topology(folder):
    topo = json.loads((folder / "topo.json").read_text())
    ports = {}
    for index, node in enumerate(topo["nodes"]):
        if node["kind"] != "port":
            continue
        facts = {fact["fact"]: fact["value"] for fact in topo["facts"] if fact["node"] in (index, node["parent"])}
        facts["rate"] = node.get("rate_bits_per_s")
        facts["ip_addresses"] = sorted(filter(None, facts.get("ip_addresses", "").split(", ")))
        facts["gids"] = {
            gid["index"]: (ipaddress.IPv6Address(gid["gid"]), gid["type"])
            for gid in topo["gids"]
            if gid["port"] == index
        }
        for gid in topo["gids"]:
            address = ipaddress.IPv6Address(gid["gid"]).ipv4_mapped
            if gid["port"] == index and address is not None:
                expect(f"{node['name']} GID {gid['index']}", gid.get("ip"), str(address))
        ports[node["name"]] = facts
    return ports


def compare(folder):
    wanted, found = ports_of_tools(folder), ports_of_topology(folder)
    expect(f"{folder.name}: ports", sorted(found), sorted(wanted))
    expect(f"{folder.name}: two devices", len(wanted), 2)
    for port in wanted.keys() & found.keys():
        for key, value in wanted[port].items():
            if key == "rate" and wanted[port]["state"] != "active":
                value = None  # the rate of a port that is down is a placeholder
            expect(f"{folder.name}: {port} {key}", found[port].get(key), value)


def says(folder, pattern):
    text = " ".join((folder / "check").read_text().split())
    if not re.search(pattern, text):
        failures.append(f"{folder.name}: check does not say /{pattern}/:\n{(folder / 'check').read_text()}")


def judge(out):
    """What differs, a sentence each."""
    failures.clear()
    for name in ("plain", "moved", "down"):
        compare(out / name)
    plain = ports_of_tools(out / "plain")
    index = {i for p in plain.values() for i, (gid, _) in p["gids"].items() if gid.ipv4_mapped is not None}
    expect("plain: indexes of IPv4", len(index), 1)
    says(out / "plain", rf"GID index {min(index)} is RoCE v2 over IPv4 on all 2 RoCE ports")
    says(out / "plain", r"RDMA in software on top of v0")
    says(out / "moved", r"no GID index is RoCE v2 on all ports \(rxe0/1 2, rxe1/1 1\)")
    says(out / "moved", r"RDMA MTU 1024 of 4096")
    says(out / "down", r"mlx5_7")
    return list(failures)
