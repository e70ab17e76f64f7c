#!/usr/bin/env python3
"""A sample of `make clients` (zoo.py): two clients in all three set-ups, every cell yes."""
import zoo
from harness import main, test


@test()
def curl_and_urllib_do_all_of_it_everywhere(lab):
    for client, version, cells in zoo.rows(lab, ["curl", "urllib"]):
        assert version, client.name
        for setup in zoo.SETUPS:
            assert all(cells[setup].values()), (client.name, setup, cells[setup])


if __name__ == "__main__":
    main()
