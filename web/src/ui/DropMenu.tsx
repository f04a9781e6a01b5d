/** A menu below a button. */
import type { ReactNode } from "react";
import { Menu } from "@mantine/core";
import "@mantine/core/styles/Popover.css";
import "@mantine/core/styles/Menu.css";

export interface MenuItem {
  label: string;
  hint?: string;
  go: () => void;
}

export default function DropMenu({ label, icon, items }: { label: string; icon?: ReactNode; items: MenuItem[] }) {
  return (
    <Menu
      defaultOpened
      position="bottom-end"
      withinPortal={false}
      withInitialFocusPlaceholder={false}
      shadow="none"
      width={220}
      transitionProps={{ duration: 0 }}
      classNames={{ dropdown: "menu-drop", item: "menu-item" }}
    >
      <Menu.Target>
        <button className="bt sm">
          {icon}
          {label}
        </button>
      </Menu.Target>
      <Menu.Dropdown>
        {items.map((item) => (
          <Menu.Item key={item.label} onClick={item.go} rightSection={<span className="dim sm">{item.hint}</span>}>
            {item.label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
